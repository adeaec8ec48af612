#include "passes/plan_memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "ir/check.h"

namespace tfc::passes {
namespace {

using ir::Buffer;
using ir::Dim;
using ir::Plan;
using ir::Point;

constexpr size_t kFewBuffers = 2000;

/// A slot in the making: the distinct sizes that it must have room for.
struct Slot {
  std::vector<Dim> sizes;
  int64_t bytes = 0;  // at the point
  int free_from = 0;  // first record that may use it again
  void add(const Buffer& buffer, const Dim& size, int64_t at_point) {
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
    bytes = std::max(bytes, at_point);
    free_from = buffer.last + 1;
  }
};

struct Assignment {
  std::vector<int> slot_of;  // by buffer
  std::vector<Slot> slots;
  int64_t bytes() const {
    int64_t sum = 0;
    for (const Slot& slot : slots) sum += slot.bytes;
    return sum;
  }
};

constexpr size_t kNone = std::numeric_limits<size_t>::max();

Dim size_of(Slot slot) {
  std::sort(slot.sizes.begin(), slot.sizes.end());
  Dim bytes = slot.sizes.front();
  for (const Dim& size : slot.sizes) bytes = max(bytes, size);
  return bytes;
}

class Assigner {
 public:
  /// `apart`: a buffer that is left out of every assignment, see `spread`.
  Assigner(const Plan& plan, const Point& point, size_t apart = kNone) : plan_(plan), apart_(apart) {
    for (const Buffer& buffer : plan.buffers) {
      sizes_.push_back(align_up(buffer.bytes, 64));
      bytes_.push_back(sizes_.back().at(point));
    }
  }

  size_t largest() const {
    return static_cast<size_t>(std::max_element(bytes_.begin(), bytes_.end()) - bytes_.begin());
  }

  /// Buffers in order of first use. A free slot of the same expression is best; then the smallest that is
  /// large enough; then the largest, which grows (or, with `grow` off, a new one).
  Assignment by_time(bool grow) const {
    std::vector<size_t> order = buffers();
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const auto key = [&](size_t i) { return std::pair(plan_.buffers[i].first, -bytes_[i]); };
      return key(a) < key(b);
    });
    Assignment result;
    result.slot_of.resize(plan_.buffers.size(), -1);
    std::set<std::pair<int64_t, int>> free;  // (bytes, slot)
    std::multimap<int, int> busy;            // free_from -> slot
    for (size_t i : order) {
      const Buffer& buffer = plan_.buffers[i];
      while (!busy.empty() && busy.begin()->first <= buffer.first) {
        const int slot = busy.begin()->second;
        free.emplace(result.slots[static_cast<size_t>(slot)].bytes, slot);
        busy.erase(busy.begin());
      }
      const int slot = take(free, i, grow, result);
      result.slots[static_cast<size_t>(slot)].add(buffer, sizes_[i], bytes_[i]);
      result.slot_of[i] = slot;
      busy.emplace(buffer.last + 1, slot);
    }
    return result;
  }

  /// Buffers from the largest to the smallest, each into the first slot that is free for its lifetime; first
  /// those that live with the buffer that is left out, so that the others' slots are free then. Slots never
  /// grow. Quadratic at worst, so for graphs of ordinary size only.
  Assignment by_size() const {
    std::vector<size_t> order = buffers();
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const auto key = [&](size_t i) { return std::pair(!lives_with_apart(i), -bytes_[i]); };
      return key(a) < key(b);
    });
    Assignment result;
    result.slot_of.resize(plan_.buffers.size(), -1);
    std::vector<std::map<int, int>> taken;  // by slot: first record -> last
    for (size_t i : order) {
      const Buffer& buffer = plan_.buffers[i];
      size_t slot = 0;
      while (slot < taken.size() && (overlaps(taken[slot], buffer) || bytes_[i] > result.slots[slot].bytes))
        ++slot;
      if (slot == taken.size()) {
        taken.emplace_back();
        result.slots.emplace_back();
      }
      taken[slot].emplace(buffer.first, buffer.last);
      result.slots[slot].add(buffer, sizes_[i], bytes_[i]);
      result.slot_of[i] = static_cast<int>(slot);
    }
    return result;
  }

  Assignment each_its_own() const {
    Assignment result;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      result.slot_of.push_back(static_cast<int>(i));
      result.slots.emplace_back();
      result.slots.back().add(plan_.buffers[i], sizes_[i], bytes_[i]);
    }
    return result;
  }

  /// Lays the buffer that was left out over all slots that nobody uses while it lives: these come first, and
  /// the last of them grows where they are not enough together, at any shape.
  Assignment spread(const Assignment& others) const {
    std::vector<bool> is_free(others.slots.size(), true);
    for (size_t i : buffers()) {
      if (lives_with_apart(i)) is_free[static_cast<size_t>(others.slot_of[i])] = false;
    }
    Assignment result;
    std::vector<int> moved(others.slots.size());
    Dim rest = sizes_[apart_];
    int64_t rest_bytes = bytes_[apart_];
    const auto move_slots = [&](bool free) {
      for (size_t slot = 0; slot < others.slots.size(); ++slot) {
        if (is_free[slot] != free) continue;
        moved[slot] = static_cast<int>(result.slots.size());
        result.slots.push_back(others.slots[slot]);
      }
    };
    move_slots(true);
    if (result.slots.empty()) return others_and_large(others);
    for (size_t slot = 0; slot + 1 < result.slots.size(); ++slot) {
      rest = rest - size_of(result.slots[slot]);
      rest_bytes -= result.slots[slot].bytes;
    }
    result.slots.back().sizes.push_back(rest);
    result.slots.back().bytes = std::max(result.slots.back().bytes, rest_bytes);
    move_slots(false);
    result.slot_of.resize(plan_.buffers.size());
    for (size_t i : buffers()) result.slot_of[i] = moved[static_cast<size_t>(others.slot_of[i])];
    result.slot_of[apart_] = 0;
    return result;
  }

 private:
  /// All but the one that is left out.
  std::vector<size_t> buffers() const {
    std::vector<size_t> list;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (i != apart_) list.push_back(i);
    }
    return list;
  }

  bool lives_with_apart(size_t i) const {
    if (apart_ == kNone) return false;
    const Buffer &buffer = plan_.buffers[i], &apart = plan_.buffers[apart_];
    return buffer.first <= apart.last && apart.first <= buffer.last;
  }

  Assignment others_and_large(Assignment others) const {
    others.slot_of[apart_] = static_cast<int>(others.slots.size());
    others.slots.emplace_back();
    others.slots.back().add(plan_.buffers[apart_], sizes_[apart_], bytes_[apart_]);
    return others;
  }

  static bool overlaps(const std::map<int, int>& taken, const Buffer& buffer) {
    const auto after = taken.upper_bound(buffer.last);  // begins when the buffer is gone
    return after != taken.begin() && std::prev(after)->second >= buffer.first;
  }

  int take(std::set<std::pair<int64_t, int>>& free, size_t buffer, bool grow, Assignment& result) const {
    auto best = free.lower_bound({bytes_[buffer], 0});
    for (auto it = best; it != free.end() && it->first == bytes_[buffer]; ++it) {
      const std::vector<Dim>& sizes = result.slots[static_cast<size_t>(it->second)].sizes;
      if (std::find(sizes.begin(), sizes.end(), sizes_[buffer]) == sizes.end()) continue;
      best = it;
      break;
    }
    if (best == free.end() && grow && !free.empty()) best = std::prev(free.end());
    if (best == free.end()) {
      result.slots.emplace_back();
      return static_cast<int>(result.slots.size()) - 1;
    }
    const int slot = best->second;
    free.erase(best);
    return slot;
  }

  const Plan& plan_;
  const size_t apart_;
  std::vector<Dim> sizes_;
  std::vector<int64_t> bytes_;
};

void apply(Assignment assignment, Plan& plan) {
  plan.slots.clear();
  for (const Slot& slot : assignment.slots) plan.slots.push_back(size_of(slot));
  for (size_t i = 0; i < plan.buffers.size(); ++i) plan.buffers[i].slot = assignment.slot_of[i];
}

void assign(Plan& plan, const Point& point, bool reuse) {
  const Assigner assigner(plan, point);
  if (!reuse || plan.buffers.empty()) return apply(assigner.each_its_own(), plan);
  const bool few = plan.buffers.size() <= kFewBuffers;
  Assignment best = assigner.by_time(true);
  const auto consider = [&](Assignment other) {
    if (other.bytes() < best.bytes()) best = std::move(other);
  };
  consider(assigner.by_time(false));
  if (few) consider(assigner.by_size());
  if (few) {
    const Assigner around(plan, point, assigner.largest());
    consider(around.spread(around.by_size()));
  }
  apply(std::move(best), plan);
}

}  // namespace

bool plan_memory(ir::Module& module, PassContext& context) {
  const std::vector<std::string>& disabled = context.options.disabled;
  const bool reuse = std::find(disabled.begin(), disabled.end(), "reuse-memory") == disabled.end();
  for (ir::Entry& entry : module.entries) {
    TFC_CHECK(entry.plan, "entry '" + entry.name + "' has no plan");
    assign(*entry.plan, context.options.point, reuse);
    context.diagnostics.remark("plan-memory", {},
                               "entry '" + entry.name + "': " + std::to_string(entry.plan->buffers.size()) +
                                   " buffers in " + std::to_string(entry.plan->slots.size()) + " slots, " +
                                   std::to_string(entry.plan->workspace_bytes().at(context.options.point)) +
                                   " bytes at the design point, lower bound " +
                                   std::to_string(workspace_lower_bound(*entry.plan, context.options.point)));
  }
  return true;
}

int64_t workspace_lower_bound(const Plan& plan, const Point& point) {
  std::vector<int64_t> change(plan.records.size() + 2);
  for (const Buffer& buffer : plan.buffers) {
    const int64_t bytes = align_up(buffer.bytes, 64).at(point);
    change[static_cast<size_t>(buffer.first)] += bytes;
    change[static_cast<size_t>(buffer.last) + 1] -= bytes;
  }
  int64_t live = 0, greatest = 0;
  for (int64_t bytes : change) greatest = std::max(greatest, live += bytes);
  return greatest;
}

}  // namespace tfc::passes
