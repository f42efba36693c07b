package run

import (
	"os"
	"os/exec"
	"testing"
)

// TestBeginEndsWithTheServer starts a command whose start does not return. The server
// sends a message and disconnects. This process is the keeper: if it stopped its child
// before the child executes the program, it would wait for the child with all its threads.
func TestBeginEndsWithTheServer(t *testing.T) {
	for _, m := range []message{{}, {request: request{End: true}}} {
		s := &service{inbox: make(chan message, 1)}
		s.start = func(cmd *exec.Cmd, _ []byte, _ []*os.File) error {
			if err := cmd.Start(); err != nil {
				return err
			}
			s.inbox <- m
			if !m.request.End {
				close(s.inbox)
			}
			return cmd.Wait()
		}
		if _, err := s.begin(start{Path: []byte("/bin/sleep"), Args: [][]byte{[]byte("sleep"), []byte("1000")}, Dir: []byte("/")}, nil); err == nil {
			t.Error("the start is not ended")
		}
	}
}
