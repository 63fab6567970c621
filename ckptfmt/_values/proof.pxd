# The C types of the compiled form of proof.py. Nothing here changes what it does.
cimport cython

cdef object _dumps

@cython.locals(kind=object, number=double)
cdef int _sort(object value) except -2


cdef class _Node:
    cdef object container
    cdef _Node parent
    cdef object key
    cdef Py_ssize_t depth

    @cython.locals(steps=list, node=_Node)
    cpdef list path(self)

cdef class Walk:
    cdef object _episode
    cdef object _limits
    cdef Py_ssize_t _depth
    cdef bint _thorough
    cdef Py_ssize_t _total
    cdef Py_ssize_t _scans_left
    cdef bint _copying
    cdef list _nodes
    cdef list _entries
    cdef list _patches

    @cython.locals(holder=list, entries=list, node=_Node)
    cpdef object run(self, object value)

    cdef object _add_to_total(self, Py_ssize_t count)

    @cython.locals(sort=int, count=Py_ssize_t)
    cdef bint _passes(self, object value, Py_ssize_t depth) except -1

    @cython.locals(pairs=dict, values=list, entries=list, place=Py_ssize_t)
    cdef object _check(self, _Node node)

    @cython.locals(kind=object, depth=Py_ssize_t)
    cdef object _visit(self, object container, object key, _Node parent, object value, list entries)

    cdef bint _keys_fit(self, dict copied, _Node node) except -1
