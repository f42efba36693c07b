package run_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// tree is a script that starts children and grandchildren, some in groups and sessions of
// their own. It prints "ready" at one of several points.
const tree = `
mark=$1 ready=$2
say() { [ "$ready" = "$1" ] && echo ready; }
say first
sleep 1000.$mark &
(sleep 1000.$mark & sleep 1000.$mark) &
setsid sleep 1000.$mark &
setsid sh -c "sleep 1000.$mark & sleep 1000.$mark" > /dev/null 2>&1 < /dev/null &
say second
sh -c "trap '' TERM HUP INT; sleep 1000.$mark & wait" &
setsid setsid sleep 1000.$mark &
# daemons: forked twice, sessions of their own, nothing inherited
(setsid bash -c "exec 2>&- >&- <&-; (sleep 1000.$mark &)" &)
(setsid setsid bash -c "exec 2>&- >&- <&-; setsid setsid sleep 1000.$mark & exit" &)
say third
sleep 0.01
say fourth
[ "$ready" = exit ] && exit 3
wait
`

var whole = flag.Bool("whole", false, "end more trees of processes")

// TestTreeIsGone ends commands at every stage in every way. No process is left when Run
// returns.
func TestTreeIsGone(t *testing.T) {
	processes := boxtest.Starter(t)
	stages := []string{"first", "second", "third", "fourth"}
	cause := errors.New("enough")
	rounds := 16 // each stage in each way
	if *whole {
		rounds = 400
	}
	for round := range rounds {
		mark := fmt.Sprintf("%d%03d", os.Getpid(), round)
		stage := stages[round%len(stages)]
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			spec := run.Spec{Argv: []string{"bash", "-c", tree, "bash", mark, stage}, Dir: "/", Env: path, Timeout: time.Minute}
			var onOutput func(protocol.OutputStream, []byte)
			wantCode, wantErr := 128+9, error(nil)
			switch round / len(stages) % 4 {
			case 0: // interrupt
				wantErr = cause
				onOutput = func(protocol.OutputStream, []byte) { cancel(cause) }
			case 1: // timeout
				spec.Timeout, wantCode = time.Duration(1+round%40)*time.Millisecond, run.TimeoutExitCode
			case 2: // its own exit
				spec.Argv[5], wantCode = "exit", 3
			case 3: // killed from outside
				onOutput = func(protocol.OutputStream, []byte) { killByMark(mark, "bash") }
			}
			res, err := processes.Run(ctx, spec, onOutput)
			if !errors.Is(err, wantErr) || err == nil && res.ExitCode != wantCode {
				t.Errorf("%+v, %v", res, err)
			}
			if left := find(mark); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

// find returns the processes with mark in their command lines.
func find(mark string) map[string]string {
	found := map[string]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		b, err := os.ReadFile(file)
		line := strings.ReplaceAll(string(b), "\x00", " ")
		if err == nil && strings.Contains(line, mark) {
			found[filepath.Base(filepath.Dir(file))] = line
		}
	}
	return found
}

func killByMark(mark, program string) {
	for pid, line := range find(mark) {
		if strings.HasPrefix(line, program) {
			_ = exec.Command("kill", "-KILL", pid).Run()
		}
	}
}
