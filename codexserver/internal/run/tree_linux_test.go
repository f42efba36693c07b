package run_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// tree is a script that starts children and grandchildren, some in groups and sessions of their own. At one of several
// points it does something and prints "ready". The numbers of seconds of those in the command's own session begin with 2.
const tree = `
mark=$1 ready=$2 action=$3
say() { if [ "$ready" = "$1" ]; then eval "$action"; echo ready; fi; }
say first
sleep 2000.$mark &
(sleep 2000.$mark & sleep 2000.$mark) &
setsid sleep 1000.$mark &
setsid sh -c "sleep 1000.$mark & sleep 1000.$mark" > /dev/null 2>&1 < /dev/null &
say second
sh -c "trap '' TERM HUP INT; sleep 2000.$mark & wait" &
sh -c 'kill -STOP $$; exec sleep $0' 2000.$mark &
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

var whole = flag.Bool("whole", nightly.Tests(), "end more trees of processes")

// TestTreeIsGone ends commands at every stage in every way. No process is left when Run returns, or soon after
// the server was killed. After the launcher was killed, daemons may be left.
func TestTreeIsGone(t *testing.T) {
	processes := boxtest.Starter(t)
	stages := []string{"first", "second", "third", "fourth"}
	cause := errors.New("enough")
	ways := []string{"interrupt", "timeout", "exit", "kill", "stop the launcher", "kill the launcher", "kill the server"}
	rounds := 2 * len(ways)
	if *whole {
		rounds = 18 * len(stages) * len(ways)
	}
	for round := range rounds {
		mark := fmt.Sprintf("%d%03d", os.Getpid(), round)
		stage, way := stages[round%len(stages)], ways[round%len(ways)] // every pair in 28 rounds
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			spec := run.Spec{Argv: []string{"bash", "-c", tree, "bash", mark, stage, ""}, Dir: "/", Env: path, Timeout: time.Minute}
			var left run.Leftovers // which take nothing of a command that is ended
			defer left.Close()
			if way != "exit" && way != "kill" {
				spec.Leftovers = &left
			}
			interrupt := func(protocol.OutputStream, []byte) { cancel(cause) }
			var onOutput func(protocol.OutputStream, []byte)
			wantCode, wantErr := 0, error(nil)
			switch way {
			case "interrupt":
				onOutput, wantErr = interrupt, cause
			case "timeout":
				spec.Timeout, wantCode = time.Duration(1+round%40)*time.Millisecond, run.TimeoutExitCode
			case "exit":
				spec.Argv[5], wantCode = "exit", 3
			case "kill":
				onOutput, wantCode = func(protocol.OutputStream, []byte) { killByMark(mark, "bash") }, 128+9
			case "stop the launcher":
				spec.Argv[6], onOutput, wantErr = "kill -STOP $PPID", interrupt, cause
			case "kill the launcher":
				spec.Argv[6], wantCode = "kill -KILL $PPID", -1
			case "kill the server":
				killServer(t, spec)
				// A process that starts another program has no words for a moment, so one look is not enough.
				var left map[string]string
				for deadline, gone := time.Now().Add(20*time.Second), 0; gone < 5 && time.Now().Before(deadline); gone++ {
					<-time.After(5 * time.Millisecond)
					if left = find(mark); len(left) > 0 {
						gone = -1
					}
				}
				must.Equal(t, "left over", none, left)
				return
			}
			res, err := processes.Run(ctx, spec, onOutput)
			if wantCode == -1 { // also before the start is reported
				if start := (*run.StartError)(nil); err == nil && (res.ExitCode != -1 || !strings.Contains(res.Stderr, run.ErrLost.Error())) || err != nil && !errors.As(err, &start) {
					t.Errorf("%+v, %v", res, err)
				}
				must.Equal(t, "left over in the session", none, find("2000."+mark))
				killByMark(mark, "")
				return
			}
			if !errors.Is(err, wantErr) || err == nil && res.ExitCode != wantCode {
				t.Errorf("%+v, %v", res, err)
			}
			must.Equal(t, "left over", none, find(mark))
		})
	}
}

// killServer runs a command in a process like the server, and kills that process when the command has printed something.
func killServer(t *testing.T, spec run.Spec) {
	server := exec.Command("/proc/self/exe")
	server.Env = append(spec.Env, serverVar+"="+strings.Join(spec.Argv, "\x01"))
	out := must.Get(server.StdoutPipe())(t)
	must.OK(t, server.Start())
	must.Get(out.Read(make([]byte, 1)))(t)
	_ = server.Process.Kill()
	_ = server.Wait()
}

// serve runs a command as the server does, and passes its output on.
func serve(words string) int {
	spec := run.Spec{Argv: strings.Split(words, "\x01"), Dir: "/", Env: path, Timeout: time.Minute}
	_, err := new(run.Starter).Run(context.Background(), spec, func(_ protocol.OutputStream, b []byte) { _, _ = os.Stdout.Write(b) })
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// none are no processes, as find returns them.
var none = map[string]string{}

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

// killByMark kills the processes with mark whose command lines begin with program, and no later ones with their ids.
func killByMark(mark, program string) {
	for pid, line := range find(mark) {
		id, err := strconv.Atoi(pid)
		if err != nil || !strings.HasPrefix(line, program) {
			continue
		}
		fd, err := unix.PidfdOpen(id, 0)
		if err != nil {
			continue // gone
		}
		if now := find(mark)[pid]; now == line {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		_ = unix.Close(fd)
	}
}
