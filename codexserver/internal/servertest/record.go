package servertest

import (
	"slices"
	"sync"
)

// record has what a part of a test did, in order. It is safe for concurrent use.
type record[T any] struct {
	mu  sync.Mutex
	all []T
}

// add adds to the record, and returns all of it.
func (r *record[T]) add(more ...T) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, more...)
	return r.all[:len(r.all):len(r.all)]
}

// list returns a copy of the record.
func (r *record[T]) list() []T { return slices.Clone(r.add()) }
