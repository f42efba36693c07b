package native_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// stepModel answers with the next of some steps that the history does not have yet, then with what the steps returned.
func stepModel(steps ...providertest.ToolCall) providertest.Turn {
	return providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		outputs := r.ToolOutputs()
		if n := len(outputs); n < len(steps) {
			return providertest.Turn{Text: []string{fmt.Sprint("step ", n+1)}, ToolCalls: steps[n : n+1]}
		}
		var all []string
		for _, o := range outputs {
			words := "ok"
			if strings.HasPrefix(o.Output, "aborted") {
				words = "aborted"
			}
			all = append(all, words)
		}
		return providertest.Say("done: " + strings.Join(all, ", "))
	}}
}

func work(dir string) []providertest.ToolCall {
	echo := func(id, name string) providertest.ToolCall {
		return providertest.Shell(id, "sh", "-c", "echo "+name+" >> "+filepath.Join(dir, "ran"))
	}
	return []providertest.ToolCall{
		echo("c1", "one"),
		providertest.Shell("c2", "apply_patch", "*** Begin Patch\n*** Add File: a\n+a\n*** Add File: b\n+b\n*** End Patch\n"),
		echo("c3", "two"),
	}
}

// linesOf runs a turn of some steps, and returns its file and the lines of that.
func (b *bench) linesOf(t *testing.T, cfg protocol.Config, steps ...providertest.ToolCall) (path string, lines []string) {
	t.Helper()
	b.provider.Add(stepModel(steps...))
	h := &host{exec: allow}
	c := b.start(t, h, cfg)
	in := say("go")
	in.Key = "key"
	turn(t, c, in)
	path = configured(t, h).RolloutPath
	closed(t, c)
	return path, strings.SplitAfter(strings.TrimSuffix(read(t, path), "\n"), "\n")
}

// continued continues a turn, and returns its answer and the notes.
func continued(t *testing.T, b *bench, path, key string, h *host) (answer string, notes []string, err error) {
	t.Helper()
	c := b.resume(t, path, protocol.Config{Continues: true}, h)
	defer c.Close()
	err = c.Turn(t.Context(), protocol.TurnInput{Key: key, Continue: func(words string) { notes = append(notes, words) }})
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.events {
		if end, ok := m.(protocol.TaskComplete); ok && end.LastAgentMessage != nil {
			answer = *end.LastAgentMessage
		}
	}
	return answer, notes, err
}

// TestContinue cuts the file of a turn after each of its lines, and within each line, and
// continues the turn. No call that the file has runs again: the model and the person are told of those without a
// result. Every other runs once, after a question. Unless whole, a line is cut on one of the two wires.
func TestContinue(t *testing.T) {
	t.Parallel()
	for n, wire := range []string{"chat", "responses"} {
		t.Run(wire, func(t *testing.T) {
			b := setup(t, "---\nwire_api = \""+wire+"\"", native.Limits{})
			path, lines := b.linesOf(t, protocol.Config{}, work(b.cwd)...)
			begins := 0
			for i, line := range lines {
				if i == 0 {
					continue
				}
				if strings.Contains(line, `"task_started"`) {
					begins = i
				}
				for _, torn := range []bool{false, true} {
					if begins == 0 || i == begins && torn || !servertest.Plays(i+n, *whole) {
						continue
					}
					t.Run(fmt.Sprint(i, torn), func(t *testing.T) {
						text := strings.Join(lines[:i+1], "")
						if torn {
							text = strings.Join(lines[:i], "") + line[:len(line)/2]
						}
						checkContinued(t, b, path, text)
					})
				}
			}
			if begins == 0 {
				t.Error("there is no record of the beginning")
			}
			validRequests(t, b.provider)
		})
	}
}

func checkContinued(t *testing.T, b *bench, path, text string) {
	ran := filepath.Join(b.cwd, "ran")
	for _, name := range []string{"ran", "a", "b"} {
		_ = os.Remove(filepath.Join(b.cwd, name))
	}
	write(t, path, text)
	complete := text[:strings.LastIndex(text, "\n")+1]
	h := &host{exec: allow}
	answer, notes, err := continued(t, b, path, "key", h)
	if !strings.Contains(complete, `"user_message"`) {
		if answer != "" || err == nil || !strings.Contains(err.Error(), "nothing of it ran") {
			t.Errorf("without its message: %q, %v", answer, err)
		}
		return
	}
	must.OK(t, err)
	got, _ := os.ReadFile(ran)
	want, wantAsks, open := "", 0, 0
	for _, step := range []struct{ id, name string }{{"c1", "one\n"}, {"c2", ""}, {"c3", "two\n"}} {
		if !strings.Contains(complete, `"call_id":"`+step.id) {
			want += step.name
			wantAsks += min(len(step.name), 1)
		} else if !strings.Contains(complete, `function_call_output","call_id":"`+step.id) {
			open++
		}
	}
	must.Equal(t, "ran", want, string(got))
	must.Equal(t, "questions", wantAsks, h.asked)
	if n := strings.Count(answer, "aborted"); n != open || len(notes) != open {
		t.Errorf("%s: %q, want %d without a result", answer, notes, open)
	}
	if body := lastRequest(b); !strings.Contains(complete, `"task_complete"`) && strings.Count(body, "Without a result: ") != open {
		t.Errorf("the model was told %s, want %d calls without a result", body, open)
	}
	if !strings.HasPrefix(answer, "done: ") || strings.Count(answer, ",") != 2 {
		t.Errorf("the answer is %q", answer)
	}
	// The file is that of an ended turn: its end can be reported again.
	again, same, err := continued(t, b, path, "key", &host{})
	if err != nil || again != answer || !slices.Equal(same, notes) {
		t.Errorf("again: %q, %v, %q, want %q", again, err, same, notes)
	}
}

// TestContinueAfterQuestion kills the process while a question is open: the next one says which call has no result, and
// asks again before it runs.
func TestContinueAfterQuestion(t *testing.T) {
	t.Parallel()
	b := setup(t, "", native.Limits{}, providertest.Call(providertest.Shell("c1", "touch", "made")), providertest.Say("unused"))
	h := &host{}
	var then string
	h.exec = func(context.Context, approval.Command) elicit.Decision {
		then = read(t, configured(t, h).RolloutPath)
		return elicit.Denied
	}
	c := b.start(t, h, protocol.Config{})
	in := say("go")
	in.Key = "key"
	turn(t, c, in)
	path := configured(t, h).RolloutPath
	closed(t, c)
	must.OK(t, os.WriteFile(path, []byte(then), 0o600))
	b.reopen(t)
	b.provider.Add(providertest.Say("done"))
	_, notes, err := continued(t, b, path, "key", &host{})
	must.OK(t, err)
	must.Equal(t, "notes", []string{"The server ended while this call was open: touch made. It may have run or not, and was not run again."}, notes)
	if body := lastRequest(b); !strings.Contains(body, "Without a result: touch made") {
		t.Errorf("the model is not told: %s", body)
	}
}

// TestContinueKeepsNarrowPolicies cuts the file of the first turn of a conversation after each of
// its lines. The call has chosen policies that allow less than the configuration, and the turn
// that continues keeps them: its command is asked about.
func TestContinueKeepsNarrowPolicies(t *testing.T) {
	t.Parallel()
	b := setup(t, "", native.Limits{})
	change(t, filepath.Join(b.home, "config.toml"), `"untrusted"`, `"never"`)
	path, lines := b.linesOf(t, protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted}, work(b.cwd)[:1]...)
	for i, line := range lines {
		text := strings.Join(lines[:i+1], "")
		if strings.Contains(line, `"call_id"`) {
			break // it does not run again
		}
		if !strings.Contains(text, `"user_message"`) {
			continue
		}
		write(t, path, text)
		h := &host{exec: allow}
		if answer, _, err := continued(t, b, path, "key", h); err != nil || h.asked != 1 {
			t.Errorf("cut after %.200s: %d questions, %q, %v", line, h.asked, answer, err)
		}
	}
}

// storeBench returns a bench whose home has a store in the folder disk.
func storeBench(t *testing.T, disk string, turn providertest.Turn) (*bench, *workertest.Dir) {
	t.Helper()
	b := setup(t, "", native.Limits{}, turn)
	return b, b.keepIn(t, disk, 1)
}

// keepIn makes another engine, whose home has a store in the folder disk.
func (b *bench) keepIn(t *testing.T, disk string, epoch uint64) (d *workertest.Dir) {
	t.Helper()
	b.store, d = workertest.Mirror(t, b.home, disk, epoch)
	b.reopen(t)
	return d
}

// elsewhere gives the bench an empty home with the same configuration, as on another machine.
func (b *bench) elsewhere(t *testing.T) {
	t.Helper()
	text := read(t, filepath.Join(b.home, "config.toml"))
	b.home = t.TempDir()
	write(t, filepath.Join(b.home, "config.toml"), text)
}

// count returns how often each line is in a file.
func count(t *testing.T, path string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for line := range strings.Lines(string(text)) {
		lines[strings.TrimSpace(line)]++
	}
	return lines
}

// TestStoreFails makes the store fail at each write of a turn. What ran is in the store; nothing
// runs afterwards; a turn that succeeded has its end there. Then the home is lost, and the turn
// continues on another machine, where nothing runs again. Unless whole, it fails in one of two ways.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	kinds := []error{worker.ErrFull, worker.ErrUnavailable, worker.ErrFenced} // the engine treats all alike
	for n, does := range []bool{false, true} {
		for from, over := 1, false; !over && !t.Failed(); from++ {
			if !servertest.Plays(from+n, *whole) {
				continue
			}
			kind := kinds[from/3%len(kinds)]
			over = true // unless it runs, which -run decides
			t.Run(fmt.Sprint(kind, does, from), func(t *testing.T) { over = storeFails(t, kind, does, from) })
		}
	}
}

// storeFails reports whether the turn has made fewer writes.
func storeFails(t *testing.T, kind error, does bool, from int) (over bool) {
	disk := t.TempDir()
	b, d := storeBench(t, disk, providertest.Turn{})
	b.provider.Reset(stepModel(work(b.cwd)...))
	writes := 0 // they fail from one on; that one may happen nevertheless
	d.Fail = func(method string) (error, bool) {
		if method != "append" && method != "put" {
			return nil, false
		}
		if writes++; writes < from {
			return nil, false
		}
		return kind, does && writes == from
	}
	h := &host{exec: allow}
	c, err := b.engine.Start(t.Context(), protocol.Config{Cwd: b.cwd}, h)
	must.OK(t, err)
	in := say("go")
	in.Key = "key"
	requests := len(b.provider.Requests())
	err = c.Turn(t.Context(), in)
	over = writes < from
	ran := filepath.Join(b.cwd, "ran")
	path := configured(t, h).RolloutPath
	rel, rerr := filepath.Rel(b.home, path)
	if rerr != nil {
		t.Fatal(rerr)
	}
	kept, rerr := os.ReadFile(filepath.Join(disk, rel))
	if rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		t.Fatal(rerr)
	}
	switch has := strings.Contains(string(kept), `"task_complete"`); {
	case err == nil && !has:
		t.Error("the turn has ended, and its end is not in the store")
	case err != nil && over:
		t.Error(err)
	case err != nil && !strings.Contains(err.Error(), kind.Error()):
		t.Errorf("the turn failed without the reason: %v", err)
	}
	before := count(t, ran)
	for name, call := range map[string]string{"one": "c1", "two": "c3"} {
		if before[name] > 0 && !strings.Contains(string(kept), `"call_id":"`+call+`"`) {
			t.Errorf("%s ran, and its call is not in the store", name)
		}
	}
	asked := len(b.provider.Requests()) - requests
	if asked > 0 && !strings.Contains(string(kept), `"task_started"`) || asked > 1+strings.Count(string(kept), `"function_call_output"`) {
		t.Errorf("the model was asked %d times, and the store does not have why:\n%s", asked, kept)
	}
	if err := c.Close(); err != nil && !errors.Is(err, kind) {
		t.Error(err)
	}
	if over {
		return true
	}

	b.elsewhere(t)
	b.keepIn(t, disk, 2)
	again, err := b.engine.Find(t.Context(), c.ID())
	if errors.Is(err, engine.ErrNotFound) && len(before) == 0 && len(kept) == 0 {
		return false
	}
	must.OK(t, err)
	answer, notes, err := continued(t, b, again.File, "key", &host{exec: allow})
	after := count(t, ran)
	never := err != nil && strings.Contains(err.Error(), "nothing of it ran")
	for _, name := range []string{"one", "two"} {
		interrupted := strings.Contains(answer, "aborted") && len(notes) > 0
		switch {
		case after[name] > 1:
			t.Errorf("%s ran %d times", name, after[name])
		case after[name] == 0 && err == nil && !interrupted:
			t.Errorf("%s did not run, and nobody was told: %q", name, answer)
		}
	}
	if err != nil && !(never && len(before) == 0) && !strings.Contains(err.Error(), "the conversation cannot be written") {
		t.Errorf("the turn was not continued: %v", err)
	}
	return false
}

// A rollout outside of the home is not in the store, so no turn begins there.
func TestStoreElsewhere(t *testing.T) {
	b, _ := storeBench(t, t.TempDir(), providertest.Say("hello"))
	path := b.first(t, protocol.Config{})
	away := filepath.Join(t.TempDir(), filepath.Base(path))
	write(t, away, read(t, path))
	requests := len(b.provider.Requests())
	c := b.resume(t, away, protocol.Config{}, &host{})
	if err := c.Turn(t.Context(), say("again")); err == nil || !strings.Contains(err.Error(), "is not in") {
		t.Error(err)
	}
	must.Equal(t, "requests", requests, len(b.provider.Requests()))
}
