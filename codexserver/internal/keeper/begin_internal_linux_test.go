package keeper

import (
	"os"
	"os/exec"
	"testing"
)

// TestBeginEndsWithTheServer starts a command whose start does not return. The server
// sends a message and disconnects.
func TestBeginEndsWithTheServer(t *testing.T) {
	for _, m := range []message{{}, {request: request{End: true}}} {
		s := &service{inbox: make(chan message, 1), start: func(cmd *exec.Cmd, _ []byte, _ []*os.File) error { return cmd.Run() }}
		s.inbox <- m
		if !m.request.End {
			close(s.inbox)
		}
		if _, err := s.begin(start{Path: []byte("/bin/sleep"), Args: [][]byte{[]byte("sleep"), []byte("1000")}, Dir: []byte("/")}, nil); err == nil {
			t.Error("the start is not ended")
		}
	}
}
