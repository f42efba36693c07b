package run_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestConnect closes connections to processes that end in different ways. Each process has
// started a daemon, which ends, too.
func TestConnect(t *testing.T) {
	const long, short = time.Minute, 20 * time.Millisecond
	for name, tt := range map[string]struct {
		script string
		talk   run.Talk
		code   int // 0 when it ends well
	}{
		"by itself":             {"exec cat", run.Talk{Leave: long}, 0},
		"when it is asked":      {"trap 'exit 0' TERM; echo; while :; do sleep 0.01; done", run.Talk{Leave: short, Ask: long}, 0},
		"with an error":         {"echo; read end; exit 3", run.Talk{Leave: long}, 3},
		"killed":                {"trap '' TERM; echo; while :; do sleep 0.01; done", run.Talk{Leave: short, Ask: short}, -1},
		"killed without asking": {"trap 'exit 0' TERM; echo; while :; do sleep 0.01; done", run.Talk{Leave: short}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			mark := "76" + strconv.Itoa(os.Getpid()) + strconv.Itoa(len(name))
			cmd := exec.Command("/bin/sh", "-c", `(setsid sleep 1000.$0 > /dev/null 2>&1 &); `+tt.script, mark)
			cmd.Env = path
			c, err := boxtest.Starter(t).Connect(t.Context(), cmd, tt.talk)
			must.OK(t, err)
			if _, err := c.In.WriteString("\n"); err != nil {
				t.Error(err)
			}
			if _, err := bufio.NewReader(c.Out).ReadString('\n'); err != nil {
				t.Error(err)
			}
			err = c.Close()
			var exit *run.ExitError
			if tt.code == 0 && err != nil || tt.code != 0 && (!errors.As(err, &exit) || exit.ExitCode() != tt.code) {
				t.Errorf("error %v, want code %d", err, tt.code)
			}
			if left := find(mark); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestReady starts nothing in a program whose main does not call Main.
func TestReady(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, withoutMain+"=1") }, func(t *testing.T) {
		if run.Ready() == nil {
			t.Error("ready")
		}
		if _, err := (&run.Starter{}).Run(t.Context(), run.Spec{Argv: []string{"/bin/true"}, Dir: "/"}, nil); err == nil {
			t.Error("it ran")
		}
	})
}
