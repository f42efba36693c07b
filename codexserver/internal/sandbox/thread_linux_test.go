package sandbox_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

// TestStartingThread keeps the thread that starts a command alive while the
// command tries to reach it: both are confined alike then.
func TestStartingThread(t *testing.T) {
	confinement, err := sandbox.New(sandbox.Options{}).Confine(readOnly, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, probe := range []string{
		"threads' memory", "threads' environ", "threads' files",
		"signal threads", "kill threads", "queue to threads", "pidfd of threads",
	} {
		t.Run(probe, func(t *testing.T) {
			err := confinement.Do(func() error {
				spec := command.Spec{Argv: []string{"/proc/self/exe", probeWord, probe, strconv.Itoa(os.Getpid())}, Dir: "/"}
				res, err := command.Run(t.Context(), spec, nil)
				switch res.Aggregated {
				case "EACCES", "EPERM":
				case "EINVAL": // before Linux 6.9 there are no such descriptors
				default:
					t.Errorf("%+v, want EACCES or EPERM", res)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
