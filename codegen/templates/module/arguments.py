

# -- arguments -----------------------------------------------------------------------------------------------

def _integer(name, value, least, most):
    try:
        number = value.__index__()
    except AttributeError:
        raise ValueError(f"{name} is {value!r}, expected an integer") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}, expected {least} to {most}")
    return number


def _number(name, value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}, expected a number") from None


def _setting(name, value, limit=float("inf")):
    number = _number(name, value)
    if not 0 <= number < limit:
        expected = "a finite number of at least 0" if limit == float("inf") else f"at least 0 and less than {limit}"
        raise ValueError(f"{name} is {value!r}, expected {expected}")
    return number


def _array(name, value):
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} is not an array: {error}") from None
    if array.dtype.kind not in "biuf" and array.size:
        raise ValueError(f"{name} has dtype {array.dtype}, expected numbers in a rectangular array")
    return array


def _ids(name, value):
    """int32 of any integers. What does not fit stays out of every range: at a masked position nobody minds."""
    array = _array(name, value)
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"{name} has dtype {array.dtype}, expected integers")
    if not np.can_cast(array.dtype, np.int32) and array.size:
        low = max(_INT32.min, np.iinfo(array.dtype).min)
        array = np.clip(array, low, _INT32.max)
    return np.require(array, np.int32, ["C", "A"])  # unlike ascontiguousarray it gives no scalar a dimension


def _reals(name, value):
    array = _array(name, value)
    if array.dtype.kind != "f" and array.size:
        raise ValueError(f"{name} has dtype {array.dtype}, expected floats")
    with np.errstate(over="ignore"):  # too large for this precision is infinite, as everywhere
        return np.require(array, _REAL, ["C", "A"])


def _mask(name, value, ones="for every real token"):
    array = _array(name, value)
    if array.dtype.kind != "b" and not ((array == 0) | (array == 1)).all():
        raise ValueError(f"{name} has values other than 0 and 1, expected 1 {ones}")
    return np.require(array, np.uint8, ["C", "A"])


def _ragged(value):
    """The rows of a list whose rows have different lengths; None: it is an ordinary array."""
    if not isinstance(value, (list, tuple)) or not value or any(np.ndim(_array("tokens", row)) != 1 for row in value):
        return None
    rows = [_ids(f"tokens[{i}]", row) for i, row in enumerate(value)]
    return rows if len({len(row) for row in rows}) > 1 else None
