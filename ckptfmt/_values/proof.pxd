# The C types of the compiled form of proof.py. They do not change what the code does.
cimport cython

cdef object _dumps

@cython.locals(kind=object, number=double)
cdef int _classify(object value) except -2


cdef class _ContainerNode:
    cdef object container
    cdef _ContainerNode parent
    cdef object key
    cdef Py_ssize_t depth

    @cython.locals(steps=list, node=_ContainerNode)
    cpdef list path(self)

cdef class PatchCollector:
    cdef object _episode
    cdef object _limits
    cdef Py_ssize_t _depth
    cdef bint _thorough
    cdef Py_ssize_t _total
    cdef Py_ssize_t _scan_budget
    cdef bint _copying
    cdef list _nodes
    cdef list _entries
    cdef list _patches

    @cython.locals(holder=list, entries=list, node=_ContainerNode)
    cpdef object run(self, object value)

    cdef object _count_values(self, Py_ssize_t count)

    @cython.locals(category=int, count=Py_ssize_t)
    cdef bint _is_plain(self, object value, Py_ssize_t depth) except -1

    @cython.locals(pairs=dict, values=list, entries=list, place=Py_ssize_t)
    cdef object _check_container(self, _ContainerNode node)

    @cython.locals(kind=object, depth=Py_ssize_t)
    cdef object _check_value(self, object container, object key, _ContainerNode parent, object value, list entries)

    cdef bint _json_can_hold_keys(self, dict copied, _ContainerNode node) except -1
