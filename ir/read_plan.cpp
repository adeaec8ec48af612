// Plans in the text form.
#include "ir/read.h"

namespace tfc::ir {

Plan Reader::plan() {
  Plan plan;
  cursor_.expect("{");
  while (!cursor_.take("}")) {
    if (cursor_.take_word("external")) {
      External external;
      external.name = cursor_.name();
      external.is_output = cursor_.take_word("out");
      if (!external.is_output) cursor_.expect_word("in");
      external.type = cursor_.type();
      plan.externals.push_back(std::move(external));
    } else if (cursor_.take_word("slot")) {
      plan.slots.push_back(cursor_.dim());
    } else if (cursor_.take_word("buffer")) {
      plan.buffers.push_back(buffer());
    } else if (cursor_.take_word("tap")) {
      plan.taps.push_back(tap());
    } else if (cursor_.take_word("call")) {
      plan.records.push_back(call());
    } else if (cursor_.take_word("loop")) {
      Record record;
      record.kind = Record::Kind::LoopBegin;
      record.tasks = cursor_.dim();
      cursor_.expect_word("of");
      record.node = cursor_.name();
      plan.records.push_back(std::move(record));
    } else if (cursor_.take_word("end")) {
      Record record;
      record.kind = Record::Kind::LoopEnd;
      cursor_.expect_word("of");
      record.node = cursor_.name();
      plan.records.push_back(std::move(record));
    } else {
      cursor_.fail("expected external, slot, buffer, tap, call, loop, end or '}'");
    }
  }
  return plan;
}

Buffer Reader::buffer() {
  Buffer buffer;
  buffer.name = cursor_.name();
  cursor_.expect_word("bytes");
  buffer.bytes = cursor_.dim();
  cursor_.expect_word("live");
  buffer.first = cursor_.small_integer();
  cursor_.expect_word("to");
  buffer.last = cursor_.small_integer();
  cursor_.expect_word("slot");
  buffer.slot = cursor_.small_integer();
  return buffer;
}

Tap Reader::tap() {
  Tap tap;
  tap.name = cursor_.name();
  tap.gradient = cursor_.take_word("gradient");
  if (!tap.gradient) cursor_.expect_word("value");
  tap.type = cursor_.type();
  cursor_.expect_word("buffer");
  tap.buffer = cursor_.small_integer();
  return tap;
}

Record Reader::call() {
  Record record;
  record.kernel.family = cursor_.name();
  record.kernel.attributes = cursor_.attributes();
  cursor_.expect("(");
  if (!cursor_.take(")")) {
    do {
      record.args.push_back(arg());
    } while (cursor_.take(","));
    cursor_.expect(")");
  }
  cursor_.expect_word("tasks");
  record.tasks = cursor_.dim();
  cursor_.expect_word("scratch");
  record.scratch = cursor_.dim();
  cursor_.expect_word("flops");
  record.flops = cursor_.dim();
  cursor_.expect_word("bytes");
  record.bytes = cursor_.dim();
  cursor_.expect_word("of");
  record.node = cursor_.name();
  return record;
}

Arg Reader::arg() {
  Arg arg;
  arg.kind = Arg::Kind::Pointer;
  if (cursor_.take("null")) {
    arg.index = -1;
    return arg;
  }
  for (const Space space : {Space::Workspace, Space::Params, Space::Grads, Space::Moment1, Space::Moment2,
                            Space::Cache, Space::Edits, Space::Constant, Space::External}) {
    if (!cursor_.take(space_name(space))) continue;  // no dimension begins like one of them
    arg.space = space;
    if (cursor_.take("[")) {
      arg.index = cursor_.small_integer();
      cursor_.expect("]");
    }
    if (cursor_.take("+")) arg.value = cursor_.dim();
    return arg;
  }
  arg.kind = Arg::Kind::Integer;
  arg.value = cursor_.dim();
  return arg;
}

}  // namespace tfc::ir
