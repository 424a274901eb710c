"""The list of races, their execution and evaluation."""
import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Race:
    """One case of gpubench against several PyTorch implementations; `goals`: peer -> least ratio of speeds, ours/peer.
    `batch`: overrides the case's batch, for sizes that its grid lacks."""

    name: str
    case: str
    goals: dict
    batch: int = 0


class CannotRace(Exception):
    """One side could not be measured, or its result is wrong."""


def all_races(device):
    """The races for "cuda" (or "cuda:N") or "cpu", the most important first: the budget may end the list early."""
    return on_cpu() if device == "cpu" else on_gpu()


def on_cpu():
    """Ops of milliseconds on two cores, and training steps with batches that take seconds."""
    attention = "b=1,h=12,kv=12,s=1024,d=64"
    conv = "n=4,h=56,w=56,c=64,k=64,r=3,s=3,stride=1,pad=1,dilation=1,groups=1"
    f32 = {"attention": ("attention/causal_forward/" + attention, 1.0),
           "attention backward": ("attention/causal_backward/" + attention, 1.0),
           "gemm 1024": ("gemm/matmul/m=1024,n=1024,k=1024", 1.0),
           "conv 3x3": ("conv/conv2d_forward/" + conv, 0.95),
           "conv 3x3, gradient of x": ("conv/conv2d_backward_data/" + conv, 0.95),
           "conv 3x3, gradient of the filter": ("conv/conv2d_backward_filter/" + conv, 0.95),
           "softmax": ("norm/softmax_forward/rows=4096,n=1024", 1.0),
           "layer norm": ("norm/layer_norm_forward/rows=2048,n=768", 1.0),
           "layer norm backward": ("norm/layer_norm_backward/rows=2048,n=768", 1.0),
           "cross-entropy": ("loss/cross_entropy_forward/rows=128,n=50257", 1.0),
           "gelu": ("activation/gelu_forward/rows=1024,n=3072", 1.0),
           "gelu backward": ("activation/gelu_backward/rows=1024,n=3072", 1.0),
           "adamw": ("optimizer/adamw/n=8388608", 1.0)}
    bf16 = {name: f32[name] for name in ("attention", "attention backward", "gemm 1024", "conv 3x3")}
    ops = [Race(f"{name}, {recipe}", f"{case}/{recipe}/x1", {"AdamW fused" if name == "adamw" else "eager": goal})
           for recipe, raced in (("f32", f32), ("bf16", bf16)) for name, (case, goal) in raced.items()]
    return ops + steps_on_cpu()


def steps_on_cpu():
    resnet = "convnet/resnet_train_step/n=8,image=224,width=64,depth=50,classes=1000/{}/x1"
    gpt2 = "transformer/gpt2_train_step/b=1,s=1024,layers=12,h=768,heads=12,vocab=50304/{}/x1"
    return [Race(f"{name} step, {recipe}", case.format(recipe), {"eager": 1.0}, batch)
            for name, case, batch in (("resnet50", resnet, 8), ("gpt2-124m", gpt2, 1)) for recipe in ("bf16", "f32")]


def on_gpu():
    attention = "b=1,h=32,kv=32,s=4096,d=128/bf16/x1"
    sdpa = {"sdpa default": 1.5, "sdpa cudnn": 0.97}
    return [
        Race("gemm 4096", "gemm/matmul/m=4096,n=4096,k=4096/bf16/x1", {"torch.mm": 1.0}),
        Race("gemm 8192", "gemm/matmul/m=8192,n=8192,k=8192/bf16/x1", {"torch.mm": 1.0}),
        Race("attention forward", "attention/causal_forward/" + attention, sdpa),
        Race("attention backward", "attention/causal_backward/" + attention, sdpa),
        Race("gpt2-124m step", "transformer/gpt2_train_step/b=4,s=1024,layers=12,h=768,heads=12,vocab=50304/bf16/x1",
             {"torch.compile": 1.05}),
        Race("adamw", "optimizer/adamw/n=124439808/f32/x1", {"AdamW fused": 1.0}),
        Race("layer norm backward", "norm/layer_norm_backward/rows=16384,n=4096/bf16/x1", {"eager": 1.8}),
        Race("layer norm backward, few rows", "norm/layer_norm_backward/rows=1024,n=12288/bf16/x1", {"eager": 1.8}),
    ]


def schedule(sides, blocks):
    """The order of the blocks: A B, B A, A B, ..., so that drift affects both sides equally."""
    order = []
    for block in range(blocks):
        order += sides if block % 2 == 0 else sides[::-1]
    return order


def side(blocks_s):
    """Median and spread of one side's blocks, in seconds per run of the program."""
    middle = statistics.median(blocks_s)
    return {"median_s": middle, "min_s": min(blocks_s), "max_s": max(blocks_s),
            "spread": (max(blocks_s) - min(blocks_s)) / middle, "blocks_s": list(blocks_s)}


def compare(our_blocks_s, peer_blocks_s, goal):
    """The ratio of speeds of the medians, and of each pair of blocks; NaN meets no goal."""
    ratio = statistics.median(peer_blocks_s) / statistics.median(our_blocks_s)
    pairs = [peer / own for own, peer in zip(our_blocks_s, peer_blocks_s)]
    return {"ratio": ratio, "ratio_min": min(pairs), "ratio_max": max(pairs), "goal": goal, "met": ratio >= goal}


def in_words(error):
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]


def run(race, ours, peers, blocks):
    """The result of one race as plain data; "reason" says why something was not measured."""
    result = {"name": race.name, "case": race.case, "goals": race.goals, "peers": {}, "reason": ""}
    try:
        copies = ours.begin(race.case, race.batch)  # parity before timing
    except CannotRace as error:
        ours.close()
        return {**result, "reason": str(error)}
    sides = {"ours": ours.timed}
    for peer, goal in race.goals.items():
        try:
            sides[peer] = peers.side(race, peer, copies)
        except Exception as error:  # torch raises many types: no kernel, out of memory
            result["peers"][peer] = {"goal": goal, "reason": in_words(error)}
    times = {name: [] for name in sides}
    try:
        for name in schedule(list(sides), blocks):
            times[name].append(sides[name]())
        name = "ours"
        result["ours"] = ours.finish()  # and after it
    except Exception as error:
        return {**result, "reason": f"{name}: {in_words(error)}"}
    finally:
        ours.close()
        sides.clear()  # frees the peers' tensors: gpubench needs the memory in the next race
        peers.release()
    result["ours"].update(side(times["ours"]))
    for peer in times:
        if peer != "ours":
            result["peers"][peer] = {**side(times[peer]), **compare(times["ours"], times[peer], race.goals[peer])}
    return result


def not_reached(race):
    """The result of a race that the budget did not reach."""
    return {"name": race.name, "case": race.case, "goals": race.goals, "peers": {}, "reason": "not reached within the budget"}


def rows(results):
    """(result, peer, its values or a reason) for each pair of the races."""
    for result in results:
        for peer in result["goals"]:
            yield result, peer, result["peers"].get(peer, {"reason": result["reason"]})


def exit_code(results):
    """3: something could not be raced; else 1: a goal was missed; else 0."""
    code = 0
    for _, _, values in rows(results):
        if "ratio" not in values:
            return 3
        if not values["met"]:
            code = 1
    return code
