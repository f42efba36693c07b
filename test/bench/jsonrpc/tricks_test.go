package main

import "testing"

// TestTricks checks that each trick is still there to be undone.
func TestTricks(t *testing.T) {
	for i := range tricks {
		if _, err := tricks[i].undo("../" + measured); err != nil {
			t.Error(err)
		}
	}
}
