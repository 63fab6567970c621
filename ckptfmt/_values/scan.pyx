# cython: language_level=3
"""The quick pass of the check of exactness, in C (see `proof`). It looks at every value of a payload.

Nothing here creates an object, runs Python code or releases the GIL, so no reference has to be counted.
Keys, strings and integers are left to orjson, which refuses those that it cannot encode exactly, unless
``thorough`` is set.
"""

cdef extern from "Python.h":
    ctypedef struct PyObject:
        pass
    ctypedef struct PyTypeObject:
        pass
    PyTypeObject PyUnicode_Type, PyLong_Type, PyFloat_Type, PyBool_Type, PyDict_Type, PyList_Type
    PyTypeObject* Py_TYPE(PyObject*)
    int PyDict_Next(PyObject*, Py_ssize_t*, PyObject**, PyObject**)
    Py_ssize_t PyDict_Size(PyObject*)
    Py_ssize_t PyList_GET_SIZE(PyObject*)
    PyObject* PyList_GET_ITEM(PyObject*, Py_ssize_t)
    double PyFloat_AS_DOUBLE(PyObject*)
    long long PyLong_AsLongLongAndOverflow(PyObject*, int*)
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject*)
    int PyUnicode_KIND(PyObject*)
    Py_ssize_t PY_SSIZE_T_MAX
    unsigned int PyUnicode_MAX_CHAR_VALUE(PyObject*)
    unsigned int PyUnicode_READ_CHAR(PyObject*, Py_ssize_t)


PLAIN = 1
LARGE = 0
NOT_PLAIN = -1
TOO_MANY = -2

cdef enum:
    _VALUE_BYTES = 8  # the approximate size of a number or of a key

cdef struct _Budget:
    Py_ssize_t values
    Py_ssize_t size


def quick_check(value, Py_ssize_t depth, Py_ssize_t values, Py_ssize_t size):
    """Classify a value that may have at most ``depth`` levels and ``values`` values.

    PLAIN: the value is exact and needs no patch, unless orjson refuses it. NOT_PLAIN: the detailed pass has to
    decide. LARGE: the text exceeds about ``size`` bytes; only a part was scanned. TOO_MANY: there are more than
    ``values`` values.
    """
    cdef _Budget left = _Budget(values, size)
    if _is_plain(<PyObject*>value, depth, &left, False):
        return PLAIN if left.size >= 0 else LARGE
    if left.size < 0:
        return LARGE
    return TOO_MANY if left.values < 0 else NOT_PLAIN


def count_plain(value, Py_ssize_t depth, Py_ssize_t max_values):
    """Count the values in ``value`` if all are exact and need no patch.

    Otherwise the result is negative: -1 minus the number of values that were scanned. An integer from 2**63 to
    2**64-1 counts as one that may need a patch.
    """
    cdef _Budget left = _Budget(max_values, PY_SSIZE_T_MAX)
    cdef bint plain = _is_plain(<PyObject*>value, depth, &left, True)
    return max_values - left.values if plain else left.values - max_values - 1


def count_brackets(bytes data):
    """The number of opening brackets and braces in a text."""
    cdef const unsigned char* text = data
    cdef Py_ssize_t at, count = 0
    for at in range(len(data)):
        count += (text[at] | 0x20) == 0x7B  # "[" and "{" differ only in this bit
    return count


cdef bint _is_plain(PyObject* value, Py_ssize_t depth, _Budget* left, bint thorough) noexcept:
    cdef int category = _classify(value, left, thorough)
    return _scan(value, depth, left, thorough) if category > 0 else category == 0


cdef inline int _classify(PyObject* value, _Budget* left, bint thorough) noexcept:
    """0 for a scalar that is plain, 1 for a container, -1 for anything else."""
    cdef PyTypeObject* kind = Py_TYPE(value)
    cdef double number
    if kind == &PyUnicode_Type:
        left.size -= PyUnicode_GET_LENGTH(value) * PyUnicode_KIND(value)
        return -1 if thorough and _has_surrogate(value) else 0
    if kind == &PyLong_Type:
        return -1 if thorough and _is_long(value) else 0
    if kind == &PyFloat_Type:
        number = PyFloat_AS_DOUBLE(value)
        return 0 if number - number == 0.0 else -1  # for NaN and the infinities the difference is NaN
    if kind == &PyDict_Type or kind == &PyList_Type:
        return 1
    return 0 if kind == &PyBool_Type or value == <PyObject*>None else -1


cdef bint _is_long(PyObject* value) noexcept:
    cdef int overflow = 0
    PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow != 0


cdef bint _has_surrogate(PyObject* value) noexcept:
    cdef Py_ssize_t at
    if PyUnicode_MAX_CHAR_VALUE(value) < 0xD800:
        return False
    for at in range(PyUnicode_GET_LENGTH(value)):
        if 0xD800 <= PyUnicode_READ_CHAR(value, at) <= 0xDFFF:
            return True
    return False


cdef bint _scan(PyObject* container, Py_ssize_t depth, _Budget* left, bint thorough) noexcept:
    """Whether all values in a container are plain. ``left`` is the budget that remains for the whole scan.

    The function is recursive, at most ``depth`` calls deep, on the C stack.
    """
    cdef bint is_dict = Py_TYPE(container) == &PyDict_Type
    cdef Py_ssize_t size = PyDict_Size(container) if is_dict else PyList_GET_SIZE(container)
    cdef Py_ssize_t place = 0
    cdef PyObject* key
    cdef PyObject* value
    cdef int category
    left.values -= size
    left.size -= size * _VALUE_BYTES
    if depth <= 0 or left.values < 0 or left.size < 0:
        return False
    if is_dict:
        while PyDict_Next(container, &place, &key, &value):
            if thorough and (Py_TYPE(key) != &PyUnicode_Type or _has_surrogate(key)):
                return False
            category = _classify(value, left, thorough)
            if category != 0 and (category < 0 or not _scan(value, depth - 1, left, thorough)):
                return False
    else:
        for place in range(size):
            value = PyList_GET_ITEM(container, place)
            category = _classify(value, left, thorough)
            if category != 0 and (category < 0 or not _scan(value, depth - 1, left, thorough)):
                return False
    return True
