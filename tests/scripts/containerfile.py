"""Parses a Containerfile and executes its steps in folders instead of images. Supports the instructions that
scripts/container/Containerfile uses; others are errors."""
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path


def steps(text):
    """[(instruction, arguments)], with continued lines joined, without comments."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    found = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            instruction, _, rest = line.strip().partition(" ")
            found.append((instruction, rest.strip()))
    return found


def copied(text):
    """Sources copied from the context, the unpacked package."""
    return [rest.split()[0] for instruction, rest in steps(text) if instruction == "COPY" and not rest.startswith("--from")]


def filled(text, values):
    return re.sub(r"\$\{(\w+)\}", lambda match: values[match.group(1)], text)


def run_in(root, command, environment, folder="/"):
    """Runs a command, a list of words, in `root` with a separate /proc."""
    inner = 'cd "$1" && shift && exec "$@"'
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", f"--mount-proc={root}/proc", "chroot", str(root), "/usr/bin/env", "-i",
                           *[f"{name}={value}" for name, value in environment.items()], "/bin/sh", "-c", inner, "sh", folder, *command],
                          capture_output=True, text=True, check=False)


class Image:
    def __init__(self, root):
        self.root = root
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.folder = "/"
        self.entry = []

    def run(self, arguments):
        return run_in(self.root, [*self.entry, *arguments], self.environment, self.folder)


def carry_out(text, context, base, target, work):
    """The image of stage `target`. `base`: root folder used for every base image; `work`: folder for the stages.
    Raises RuntimeError if a step fails, ValueError for an unsupported step."""
    arguments, images, image = {}, {}, None
    for instruction, rest in steps(text):
        words = rest.split()
        if instruction == "ARG" and image is None:
            name, _, value = rest.partition("=")
            arguments[name] = value
        elif instruction == "FROM" and len(words) == 3 and words[1] == "AS":
            if target in images:
                break
            root = Path(work) / words[2]
            if filled(words[0], arguments) == "scratch":
                root.mkdir()
            elif words[2] == target:
                subprocess.run(["cp", "-a", str(base), str(root)], check=True)
            else:
                root = None  # like buildkit and buildah, skips stages that `target` does not need
            image = images[words[2]] = Image(root)
        elif image is not None and image.root is None:
            continue
        elif instruction == "COPY" and len(words) in (2, 3) and words[-1].startswith("/"):
            origin = Path(context)
            if len(words) == 3:
                origin = images[words.pop(0).removeprefix("--from=")].root
            source, destination = origin / words[0].lstrip("/"), image.root / words[1].lstrip("/")
            if not source.exists():
                raise RuntimeError(f"COPY {rest}: no {source}")
            os.makedirs(destination.parent, exist_ok=True)
            if source.is_dir():  # copies the content of the folder, like container builders
                shutil.copytree(source, destination, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(source, destination)
        elif instruction == "ENV":
            for word in shlex.split(rest):
                name, _, value = word.partition("=")
                image.environment[name] = filled(value, image.environment)
        elif instruction == "RUN":
            done = run_in(image.root, ["/bin/sh", "-c", rest], image.environment, image.folder)
            if done.returncode != 0:
                raise RuntimeError(f"RUN {rest}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        elif instruction == "WORKDIR":
            image.folder = rest
            os.makedirs(image.root / rest.lstrip("/"), exist_ok=True)
        elif instruction == "ENTRYPOINT" and re.fullmatch(r'\["[^"]*"\]', rest):
            image.entry = [rest[2:-2]]
        else:
            raise ValueError(f"{instruction} {rest}: not known here")
    return images[target]
