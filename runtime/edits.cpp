#include "runtime/edits.h"

#include <stdio.h>
#include <string.h>

#include "runtime/exports.h"
#include "runtime/objects.h"
#include "runtime/structs.h"

namespace tc {

namespace {

using Long = long long;

constexpr int kDims = 4;  // of values and arrays, filled up with 1 in front

/// A shape by NumPy's rules of broadcasting: dimensions count from the last.
struct Shape {
  int32_t rank = 0;
  int64_t dims[kDims] = {};  // 0: any size, the call's
  int64_t at(int place) const { return place < kDims - rank ? 1 : dims[place - (kDims - rank)]; }
  int64_t width() const { return rank == 0 ? 1 : dims[rank - 1]; }
};

struct ShapeText {
  explicit ShapeText(const Shape& shape) {
    size_t length = static_cast<size_t>(snprintf(text, sizeof text, "["));
    for (int32_t i = 0; i < shape.rank; ++i) {
      const char* separator = i + 1 < shape.rank ? "," : "";
      char* end = text + length;
      length += static_cast<size_t>(
          shape.dims[i] > 0 ? snprintf(end, sizeof text - length, "%lld%s", Long{shape.dims[i]}, separator)
                            : snprintf(end, sizeof text - length, "*%s", separator));
    }
    snprintf(text + length, sizeof text - length, "]");
  }
  char text[kDims * 22 + 4];
};

bool fits(const Shape& array, const Shape& value) {
  if (array.rank > value.rank) return false;
  for (int place = 0; place < kDims; ++place) {
    if (array.at(place) != 1 && value.at(place) != 0 && array.at(place) != value.at(place)) return false;
  }
  return true;
}

Shape shape_of(const EditArray& array) {
  Shape shape{array.rank, {}};
  memcpy(shape.dims, array.shape, sizeof shape.dims);
  return shape;
}

Shape shape_in(const ModelDesc& model, const EditDesc& edited, const Sizes& sizes) {
  Shape shape{edited.rank, {}};
  for (int32_t i = 0; i < edited.rank; ++i) shape.dims[i] = evaluate(model.code + edited.dims[i], sizes);
  return shape;
}

/// The same without what a call decides. Entries agree on the rest.
Shape fixed_shape(const ModelDesc& model, const EditDesc& edited) {
  Shape shape{edited.rank, {}};
  for (int32_t i = 0; i < edited.rank; ++i) {
    int64_t fixed;
    if (is_constant(model.code + edited.dims[i], fixed)) shape.dims[i] = fixed;
  }
  return shape;
}

const EditDesc* find_edit(const EntryDesc& entry, int32_t index) {
  for (int32_t i = 0; i < entry.edit_count; ++i) {
    if (entry.edits[i].edit == index) return &entry.edits[i];
  }
  return nullptr;
}

const EditDesc& any_edit(const ModelDesc& model, int32_t index) {
  const EditDesc* found = nullptr;
  for (int e = 0; !found; ++e) found = find_edit(model.entries[e], index);
  return *found;
}

tc_status check_fit(const char* name, const EditArray& array, const char* edited, const Shape& value,
                    Message& message) {
  if (fits(shape_of(array), value)) return TC_OK;
  return message.fail(TC_E_ARGUMENT,
                      "%s of the edit of '%s' has shape %s, which does not fit %s, the shape in this call",
                      name, edited, ShapeText(shape_of(array)).text, ShapeText(value).text);
}

/// Strides over the leading dimensions, in elements: 0 where the array repeats.
void write_strides(const Shape& array, int64_t width, int64_t (&strides)[3]) {
  int64_t next = width;
  for (int place = kDims - 2; place >= 0; --place) {
    strides[place] = array.at(place) == 1 ? 0 : next;
    next *= array.at(place);
  }
}

/// An array of the caller before anything of it is kept.
struct Given {
  const char* name;  // "value"
  const tc_array* array;
  int64_t element_bytes;
  Shape shape;
  const char* data;

  tc_status read(const char* edited, const Shape& value, Message& message);
  int64_t rows() const {
    int64_t count = 1;
    for (int32_t i = 0; i + 1 < shape.rank; ++i) count = times(count, shape.dims[i]);
    return count;
  }
  /// The element that stands at a column of the value.
  const char* at(int64_t row, int64_t column) const {
    return data + (row * shape.width() + (shape.width() == 1 ? 0 : column)) * element_bytes;
  }
};

tc_status Given::read(const char* edited, const Shape& value, Message& message) {
  tc_array copy;
  tc_status status = read_struct(name, array, copy, message);
  if (status == TC_OK) status = check_pointer(name, copy.data, element_bytes, message);
  if (status != TC_OK) return status;
  if (copy.rank < 0 || copy.rank > value.rank) {
    return message.fail(TC_E_ARGUMENT, "%s has %d dimensions, but '%s' has %d", name, copy.rank, edited,
                        value.rank);
  }
  data = static_cast<const char*>(copy.data);
  shape.rank = copy.rank;
  for (int32_t i = 0; i < copy.rank; ++i) {
    shape.dims[i] = copy.shape[i];
    if (copy.shape[i] < 1)
      return message.fail(TC_E_ARGUMENT, "%s.shape[%d] is %lld, expected at least 1", name, i,
                          Long{copy.shape[i]});
  }
  if (fits(shape, value)) return TC_OK;
  return message.fail(TC_E_ARGUMENT, "%s has shape %s, which does not fit %s, that of '%s'", name,
                      ShapeText(shape).text, ShapeText(value).text, edited);
}

tc_status check_where(const Given& where, Message& message) {
  const int64_t elements = times(where.rows(), where.shape.width());
  for (int64_t i = 0; i < elements; ++i) {
    const uint8_t flag = static_cast<uint8_t>(where.data[i]);
    if (flag > 1)
      return message.fail(TC_E_ARGUMENT, "element %lld of where is %d, expected 0 or 1", Long{i}, flag);
  }
  return TC_OK;
}

/// Makes the copy; `array` is as it was where there is no memory.
tc_status keep(const Given& given, int64_t width, Allocator& allocator, EditArray& array, Message& message) {
  const int64_t rows = given.rows(), bytes = given.element_bytes;
  const tc_status status =
      allocator.allocate(array.memory, times(times(rows, width), bytes), "an edit", message);
  if (status != TC_OK) return status;
  array.rank = given.shape.rank;
  memcpy(array.shape, given.shape.dims, sizeof array.shape);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t w = 0; w < width; ++w)
      memcpy(array.memory.data + (r * width + w) * bytes, given.at(r, w), static_cast<size_t>(bytes));
  }
  return TC_OK;
}

tc_status check_index(const ModelDesc& model, int32_t index, Message& message) {
  if (index >= 0 && index < model.edit_count) return TC_OK;
  return message.fail(TC_E_ARGUMENT, "the edit is number %d, but %s has %d", index, model.name,
                      model.edit_count);
}

tc_status set_edit(tc_session& session, int32_t index, int how, const tc_array* value,
                   const tc_array* where) {
  const ModelDesc& model = *session.model->desc;
  Message& message = session.message;
  tc_status status = check_index(model, index, message);
  if (status != TC_OK) return status;
  if (how != TC_EDIT_REPLACE && how != TC_EDIT_ADD)
    return message.fail(TC_E_ARGUMENT, "how is %d, expected TC_EDIT_REPLACE or TC_EDIT_ADD", how);
  const char* name = model.edits[index];
  const Shape shape = fixed_shape(model, any_edit(model, index));
  const uint8_t everywhere = 1;
  Given values{"value", value, real_bytes(model), {}, nullptr};
  Given places{"where", where, 1, {}, reinterpret_cast<const char*>(&everywhere)};
  status = values.read(name, shape, message);
  if (status == TC_OK && where) status = places.read(name, shape, message);
  if (status == TC_OK) status = check_where(places, message);
  Edit edit;
  if (status == TC_OK) status = keep(values, shape.width(), session.allocator, edit.value, message);
  if (status == TC_OK) status = keep(places, shape.width(), session.allocator, edit.how, message);
  if (status != TC_OK) {
    release_edit(edit, session.allocator);
    return status;
  }
  for (int64_t i = 0; i < edit.how.memory.bytes; ++i)
    edit.how.memory.data[i] = edit.how.memory.data[i] ? static_cast<char>(how) : char{EditKeep};
  release_edit(session.edits[index], session.allocator);
  session.edits[index] = edit;
  return TC_OK;
}

}  // namespace

void release_edit(Edit& edit, Allocator& allocator) {
  allocator.release(edit.value.memory);
  allocator.release(edit.how.memory);
  edit = {};
}

tc_status check_edits(const ModelDesc& model, const Edit* edits, EntryId id, const Sizes& sizes,
                      Message& message) {
  const EntryDesc& entry = model.entries[id];
  for (int32_t i = 0; i < entry.edit_count; ++i) {
    const int32_t index = entry.edits[i].edit;
    if (!edits[index].is_set()) continue;
    const Shape value = shape_in(model, entry.edits[i], sizes);
    tc_status status = check_fit("value", edits[index].value, model.edits[index], value, message);
    if (status == TC_OK) status = check_fit("where", edits[index].how, model.edits[index], value, message);
    if (status != TC_OK) return status;
  }
  return TC_OK;
}

void hold_edits(const ModelDesc& model, const Edit* edits, const Frame& frame, char* memory) {
  const EntryDesc& entry = model.entries[frame.entry];
  EditEntry* table = reinterpret_cast<EditEntry*>(memory + frame.edits);
  for (int32_t i = 0; i < entry.edit_count; ++i) {
    const int32_t index = entry.edits[i].edit;
    const Edit& edit = edits[index];
    if (!edit.is_set()) continue;
    const int64_t width = fixed_shape(model, entry.edits[i]).width();
    table[index].value = static_cast<int64_t>(reinterpret_cast<intptr_t>(edit.value.memory.data));
    table[index].how = static_cast<int64_t>(reinterpret_cast<intptr_t>(edit.how.memory.data));
    write_strides(shape_of(edit.value), width, table[index].value_strides);
    write_strides(shape_of(edit.how), width, table[index].how_strides);
  }
}

}  // namespace tc

extern "C" {

tc_status tc_rt_edit_info(int32_t index, tc_edit* info) {
  const tc::ModelDesc& model = tc_model_desc;
  if (index < 0 || index >= model.edit_count) return TC_E_ARGUMENT;
  tc_edit values;
  memset(&values, 0, sizeof values);
  values.name = model.edits[index];
  const tc::Shape shape = tc::fixed_shape(model, tc::any_edit(model, index));
  values.rank = shape.rank;
  memcpy(values.shape, shape.dims, sizeof values.shape);
  for (int e = 0; e < tc::EntryEnd; ++e) {
    if (tc::find_edit(model.entries[e], index)) values.entries |= 1u << e;
  }
  return tc::write_struct(info, values);
}

tc_status tc_rt_set_edit(tc_session* session, int32_t index, int how, const tc_array* value,
                         const tc_array* where) {
  const tc::SessionCall call(session);
  return call.status() == TC_OK ? tc::set_edit(*session, index, how, value, where) : call.status();
}

tc_status tc_rt_clear_edits(tc_session* session, int32_t index) {
  const tc::SessionCall call(session);
  if (call.status() != TC_OK) return call.status();
  const tc::ModelDesc& model = *session->model->desc;
  if (index != TC_ALL_EDITS) {
    const tc_status status = tc::check_index(model, index, session->message);
    if (status == TC_OK) tc::release_edit(session->edits[index], session->allocator);
    return status;
  }
  for (int32_t i = 0; i < model.edit_count; ++i) tc::release_edit(session->edits[i], session->allocator);
  return TC_OK;
}

}  // extern "C"
