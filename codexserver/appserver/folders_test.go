package appserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestMovedFolder puts a link in the place of the working folder at each moment of a turn, which is then interrupted.
func TestMovedFolder(t *testing.T) {
	testenv.NeedsLinks(t)
	for _, linked := range []bool{false, true} { // the working folder is named by a link
		for _, when := range []string{"never", "the model thinks", "a question is open", "it was answered", "a command runs"} {
			inBubble(t, fmt.Sprintf("%s/%t", when, linked), func(t *testing.T, f *fake) {
				top := boxtest.Folder(t)
				boxtest.Lay(t, top, "repo/sub/", "home/")
				sub := filepath.Join(top, "repo", "sub")
				if f.cwd = sub; linked {
					f.cwd = filepath.Join(top, "link")
					must.OK(t, os.Symlink(filepath.Join(top, "repo"), f.cwd))
					f.cwd = filepath.Join(f.cwd, "sub")
				}
				at := func(moment string) {
					if moment == when {
						synctest.Wait() // nobody looks between the two
						must.OK(t, os.Rename(sub, sub+"2"), os.Symlink(filepath.Join(top, "home"), sub))
					}
				}
				interrupts := f.keep("turn/interrupt")
				h := &recorder{exec: func(context.Context, approval.Command) elicit.Outcome {
					at("a question is open")
					return elicit.Outcome{Decision: elicit.Approved}
				}}
				answers := make(chan string, 1)
				f.turn = func(r *run) {
					at("the model thinks")
					r.item(threadID, r.current(), command)
					answers <- r.askCommand(threadID, r.current())
					at("it was answered")
					r.item(threadID, r.current(), strings.Replace(command, "c1", "c2", 1))
					at("a command runs")
					r.item(threadID, r.current(), strings.Replace(command, "c1", "c3", 1))
					synctest.Wait()
					if len(*interrupts) == 0 {
						r.complete("completed")
					}
				}
				conv := must.Get(f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{Cwd: f.cwd, Sandbox: protocol.SandboxWorkspaceWrite}, h))(t)
				err := conv.Turn(t.Context(), text("go"))
				aborted, moved := errors.As(err, new(*engine.AbortError)), when != "never"
				if aborted != moved || (len(*interrupts) == 1) != moved || moved && !strings.Contains(err.Error(), sub) {
					t.Errorf("%d interrupts, %v", len(*interrupts), err)
				}
				approved := !slices.Contains([]string{"the model thinks", "a question is open"}, when)
				if answer := <-answers; strings.Contains(answer, `"accept"`) != approved {
					t.Errorf("answered %s", answer)
				}
			})
		}
	}
}

// TestRest ends turns that have left a command running, or not.
func TestRest(t *testing.T) {
	for name, tt := range map[string]struct {
		left  bool          // a command runs at the end
		end   string        // of the turn
		looks []any         // what the app-server answers; it ends, or goes on with the last
		want  time.Duration // until the folders are free
	}{
		"nothing":           {false, "completed", nil, 0},
		"interrupted":       {false, "interrupted", nil, 0},
		"a command":         {true, "completed", []any{1, 1, 0}, 2 * time.Second},
		"a command stopped": {true, "interrupted", []any{0}, 0},
		"it does not say":   {true, "completed", []any{jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "unknown variant")}, time.Minute},
	} {
		inBubble(t, name, func(t *testing.T, f *fake) {
			var looked atomic.Int64
			f.on["thread/backgroundTerminals/list"] = func(*run, *jsonrpc.Request) (any, error) {
				look := tt.looks[min(int(looked.Add(1)), len(tt.looks))-1]
				if err, ok := look.(error); ok {
					return nil, err
				}
				return map[string]any{"data": make([]struct{}, look.(int))}, nil
			}
			f.turn = func(r *run) {
				if r.item(threadID, r.current(), command); !tt.left {
					r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":%s}`, threadID, r.current(), strings.Replace(command, "inProgress", "completed", 1))
				}
				r.complete(tt.end)
			}
			e := f.engine(appserver.Options{})
			conv := start(t, e, &recorder{})
			_ = conv.Turn(t.Context(), text("go")) // interrupted ones fail
			begun, free := time.Now(), make(chan time.Duration, 1)
			conv.(engine.Resolver).Rest(func() { free <- time.Since(begun) })
			if !tt.left && len(free) == 0 {
				t.Error("the folders are not free at once")
			}
			time.Sleep(time.Minute)
			must.OK(t, e.Close()) // which ends what the turn left
			if got := (<-free).Round(time.Second); got != tt.want || int(looked.Load()) < len(tt.looks) {
				t.Errorf("free after %v and %d looks", got, looked.Load())
			}
		})
	}
}
