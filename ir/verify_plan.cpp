#include "ir/verify_plan.h"

#include <algorithm>
#include <map>
#include <set>

namespace tfc::ir {
namespace {

// Sizes at which a slot is compared with its buffers: nothing here proves inequalities for all sizes.
constexpr Point kPoints[] = {
    {{1, 1, 1, 1, 0}}, {{2, 3, 5, 7, 0}}, {{8, 256, 64, 512, 0}}, {{1, 1000, 17, 1, 0}}};

class PlanChecker {
 public:
  PlanChecker(const Plan& plan, const Module& module) : plan_(plan), module_(module) {}

  std::vector<std::string> run() {
    externals();
    slots();
    buffers();
    shared_slots();
    taps();
    records();
    return std::move(faults_);
  }

 private:
  void externals() {
    std::set<std::pair<bool, std::string>> names;
    for (const External& external : plan_.externals)
      if (!names.emplace(external.is_output, external.name).second)
        faults_.push_back("external '" + external.name + "' is there twice");
  }

  /// Offsets are running sums of slots, and must not move inside a loop.
  void slots() {
    for (size_t i = 0; i < plan_.slots.size(); ++i)
      if (plan_.slots[i].mentions(Symbol::I))
        faults_.push_back("slot " + std::to_string(i) +
                          " has a size that changes from iteration to iteration: " + plan_.slots[i].text());
  }

  void buffers() {
    const int records = static_cast<int>(plan_.records.size()), slots = static_cast<int>(plan_.slots.size());
    for (const Buffer& buffer : plan_.buffers) {
      const std::string what = "buffer '" + buffer.name + "' ";
      if (buffer.bytes.mentions(Symbol::I))
        faults_.push_back(what + "has a size that changes from iteration to iteration: " + buffer.bytes.text());
      if (buffer.first > buffer.last) continue;  // touched by nobody
      if (buffer.first < 0 || buffer.last >= records)
        faults_.push_back(what + "lives in records " + std::to_string(buffer.first) + " to " +
                          std::to_string(buffer.last) + ", there are " + std::to_string(records));
      if (buffer.slot < -1 || buffer.slot >= slots)
        faults_.push_back(what + "has slot " + std::to_string(buffer.slot) + ", there are " +
                          std::to_string(slots));
      if (buffer.slot < 0 || buffer.slot >= slots) continue;
      if (last_slot(buffer) == slots)
        faults_.push_back(what + "needs " + buffer.bytes.text() + " bytes, more than its slot " +
                          std::to_string(buffer.slot));
    }
  }

  /// A buffer may reach into the slots behind its own. The last one it touches at any of the points; one past
  /// the plan's last where they are not enough.
  int last_slot(const Buffer& buffer) const {
    int last = buffer.slot;
    for (const Point& point : kPoints) {
      int64_t rest = buffer.bytes.at(point);
      int slot = buffer.slot;
      for (; slot < static_cast<int>(plan_.slots.size()); ++slot) {
        rest -= plan_.slots[static_cast<size_t>(slot)].at(point);
        if (rest <= 0) break;
      }
      last = std::max(last, slot);
    }
    return last;
  }

  void shared_slots() {
    std::map<int, std::vector<const Buffer*>> by_slot;
    for (const Buffer& buffer : plan_.buffers) {
      if (buffer.slot < 0 || buffer.first > buffer.last) continue;
      const int last = last_slot(buffer);
      const bool fits = last < static_cast<int>(plan_.slots.size());  // else that is its fault, whatever lies behind
      for (int slot = buffer.slot; slot <= (fits ? last : buffer.slot); ++slot) by_slot[slot].push_back(&buffer);
    }
    for (auto& [slot, sharers] : by_slot) {
      std::sort(sharers.begin(), sharers.end(),
                [](const Buffer* a, const Buffer* b) { return a->first < b->first; });
      const Buffer* latest = nullptr;  // of those so far the one that lives longest
      for (const Buffer* buffer : sharers) {
        if (latest != nullptr && buffer->first <= latest->last)
          faults_.push_back("buffers '" + latest->name + "' and '" + buffer->name + "' share slot " +
                            std::to_string(slot) + " while both live");
        if (latest == nullptr || buffer->last > latest->last) latest = buffer;
      }
    }
  }

  void taps() {
    for (const Tap& tap : plan_.taps) {
      const std::string what = "tap '" + tap.name + "' ";
      if (tap.buffer < 0 || static_cast<size_t>(tap.buffer) >= plan_.buffers.size()) {
        faults_.push_back(what + "is in buffer " + std::to_string(tap.buffer) + ", there are " +
                          std::to_string(plan_.buffers.size()));
        continue;
      }
      const Buffer& buffer = plan_.buffers[static_cast<size_t>(tap.buffer)];
      if (buffer.bytes != tap.type.bytes())
        faults_.push_back(what + "is " + tap.type.text() + ", its buffer has " + buffer.bytes.text() + " bytes");
      if (buffer.last + 1 < static_cast<int>(plan_.records.size()))
        faults_.push_back(what + "is gone before the entry ends: its buffer lives to record " +
                          std::to_string(buffer.last));
    }
  }

  void records() {
    bool in_loop = false;
    for (size_t i = 0; i < plan_.records.size(); ++i) {
      const Record& record = plan_.records[i];
      const std::string what = "record " + std::to_string(i) + " ";
      if (record.kind == Record::Kind::LoopBegin) {
        if (in_loop) faults_.push_back(what + "begins a loop inside a loop");
        in_loop = true;
      } else if (record.kind == Record::Kind::LoopEnd) {
        if (!in_loop) faults_.push_back(what + "ends a loop that did not begin");
        in_loop = false;
      } else {
        call(record, static_cast<int>(i), in_loop);
      }
    }
    if (in_loop) faults_.push_back("a loop does not end");
  }

  void call(const Record& record, int number, bool in_loop) {
    const std::string what = "record " + std::to_string(number) + " (" + record.kernel.family + ") ";
    if (record.kernel.family.empty()) faults_.push_back(what + "names no kernel");
    if (record.scratch.mentions(Symbol::I))
      faults_.push_back(what + "has scratch memory that changes from iteration to iteration");
    if (!in_loop && record.tasks.mentions(Symbol::I))
      faults_.push_back(what + "counts by a loop it is not in");
    for (const Arg& arg : record.args) {
      if (!in_loop && arg.value.mentions(Symbol::I))
        faults_.push_back(what + "uses the index of a loop it is not in");
      if (arg.kind == Arg::Kind::Pointer && arg.index >= 0) pointer(arg, what, number);
    }
  }

  void pointer(const Arg& arg, const std::string& what, int number) {
    size_t count = 1;
    if (arg.space == Space::Workspace) count = plan_.buffers.size();
    if (arg.space == Space::External) count = plan_.externals.size();
    if (arg.space == Space::Constant) count = module_.constants.size();
    if (static_cast<size_t>(arg.index) >= count) {
      faults_.push_back(what + "points to " + std::string(space_name(arg.space)) + "[" +
                        std::to_string(arg.index) + "], there are " + std::to_string(count));
      return;
    }
    if (arg.space != Space::Workspace) return;
    const Buffer& buffer = plan_.buffers[static_cast<size_t>(arg.index)];
    if (number < buffer.first || number > buffer.last)
      faults_.push_back(what + "uses buffer '" + buffer.name + "', which does not live then");
  }

  const Plan& plan_;
  const Module& module_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> plan_faults(const Plan& plan, const Module& module) {
  return PlanChecker(plan, module).run();
}

}  // namespace tfc::ir
