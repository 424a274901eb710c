// Items of one key together.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpubench {

template <class Item>
struct ItemGroup {
  std::string key;
  std::vector<const Item*> items;
};

/// Groups and items in the order given. Points into `items`, a vector or a span.
template <class Items, class KeyOf>
[[nodiscard]] auto grouped(const Items& items, const KeyOf& key_of) {
  std::vector<ItemGroup<typename Items::value_type>> groups;
  std::unordered_map<std::string, std::size_t> places;
  for (const auto& item : items) {
    const auto [place, fresh] = places.try_emplace(key_of(item), groups.size());
    if (fresh) groups.push_back({place->first, {}});
    groups[place->second].items.push_back(&item);
  }
  return groups;
}

}  // namespace gpubench
