# cython: language_level=3
"""Looking at every value of a payload, in C: the quick half of the proof of exactness (see `proof`).

Nothing here makes an object, runs Python code or gives up the GIL, so no reference needs to be counted.
Keys, strings and integers are left to orjson, which refuses what it cannot hold, unless ``thorough``.
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
ODD = -1
MANY = -2

cdef enum:
    _VALUE_BYTES = 8  # about, of a number or of a key

cdef struct _Left:
    Py_ssize_t values
    Py_ssize_t size


def judge(value, Py_ssize_t depth, Py_ssize_t values, Py_ssize_t size):
    """What there is to do with a value of at most ``depth`` containers and ``values`` values.

    PLAIN: it is exact and needs no patch, as far as orjson would not refuse it. ODD: that is not so. LARGE: its
    text has more than about ``size`` bytes; not all of it was looked at. MANY: it has more than ``values``.
    """
    cdef _Left left = _Left(values, size)
    if _is_sound(<PyObject*>value, depth, &left, False):
        return PLAIN if left.size >= 0 else LARGE
    if left.size < 0:
        return LARGE
    return MANY if left.values < 0 else ODD


def count_sound(value, Py_ssize_t depth, Py_ssize_t most):
    """How many values lie in ``value``; when something in it is not exact, or may need a patch, the number of
    values looked at, and one, as a negative number.

    An integer from 2**63 to 2**64-1 counts as one that may need a patch.
    """
    cdef _Left left = _Left(most, PY_SSIZE_T_MAX)
    cdef bint sound = _is_sound(<PyObject*>value, depth, &left, True)
    return most - left.values if sound else left.values - most - 1


def brackets(bytes data):
    """How many brackets and braces open in a text."""
    cdef const unsigned char* text = data
    cdef Py_ssize_t at, count = 0
    for at in range(len(data)):
        count += (text[at] | 0x20) == 0x7B  # "[" and "{" differ in this bit only
    return count


cdef bint _is_sound(PyObject* value, Py_ssize_t depth, _Left* left, bint thorough) noexcept:
    cdef int sort = _sort(value, left, thorough)
    return _scan(value, depth, left, thorough) if sort > 0 else sort == 0


cdef inline int _sort(PyObject* value, _Left* left, bint thorough) noexcept:
    """0 for a value without others in it that is in order, 1 for a container, -1 for anything else."""
    cdef PyTypeObject* kind = Py_TYPE(value)
    cdef double number
    if kind == &PyUnicode_Type:
        left.size -= PyUnicode_GET_LENGTH(value) * PyUnicode_KIND(value)
        return -1 if thorough and _has_surrogate(value) else 0
    if kind == &PyLong_Type:
        return -1 if thorough and _is_long(value) else 0
    if kind == &PyFloat_Type:
        number = PyFloat_AS_DOUBLE(value)
        return 0 if number - number == 0.0 else -1  # NaN and the infinities differ from themselves so
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


cdef bint _scan(PyObject* container, Py_ssize_t depth, _Left* left, bint thorough) noexcept:
    """Look at a container; ``left`` says how much more may be looked at in all.

    It calls itself, at most ``depth`` times deep, on C's stack.
    """
    cdef bint is_dict = Py_TYPE(container) == &PyDict_Type
    cdef Py_ssize_t size = PyDict_Size(container) if is_dict else PyList_GET_SIZE(container)
    cdef Py_ssize_t place = 0
    cdef PyObject* key
    cdef PyObject* value
    cdef int sort
    left.values -= size
    left.size -= size * _VALUE_BYTES
    if depth <= 0 or left.values < 0 or left.size < 0:
        return False
    if is_dict:
        while PyDict_Next(container, &place, &key, &value):
            if thorough and (Py_TYPE(key) != &PyUnicode_Type or _has_surrogate(key)):
                return False
            sort = _sort(value, left, thorough)
            if sort != 0 and (sort < 0 or not _scan(value, depth - 1, left, thorough)):
                return False
    else:
        for place in range(size):
            value = PyList_GET_ITEM(container, place)
            sort = _sort(value, left, thorough)
            if sort != 0 and (sort < 0 or not _scan(value, depth - 1, left, thorough)):
                return False
    return True
