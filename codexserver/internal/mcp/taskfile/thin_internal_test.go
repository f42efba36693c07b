package taskfile

import (
	"fmt"
	"testing"
	"time"
)

// TestSweepKeepsNewest checks that a sweep removes the oldest finished tasks if there are too many,
// and no unfinished one.
func TestSweepKeepsNewest(t *testing.T) {
	s := New(t.TempDir(), nil)
	defer s.Close()
	s.most = 3
	var ids []string
	for n := range 6 {
		id, err := NewID(fmt.Sprint("thread-", n))
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.Create(Task{ID: id, Status: Working})
		if err == nil && n > 0 {
			made.Status, made.Result = Completed, []byte(`{}`)
			_, err = s.Update(made)
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := s.Sweep(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	for n, id := range ids {
		if _, _, err := s.Get(id); (err == nil) != (n == 0 || n > 2) {
			t.Errorf("task %d: %v", n, err)
		}
	}
}
