package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats.go/jetstream"
)

// tasksOfEach is the number of tasks of each user.
const tasksOfEach = 10

// script is the command of an attempt. It says when it begins and ends, and in which worker: the
// processes of a worker have a namespace of their own, whose first process has a time.
func script(name, seconds string) string {
	return "n=" + name + `; w=$(readlink /proc/self/ns/pid)$(cut -d " " -f 22 /proc/1/stat); echo "$n begins $w" >> ran; sleep ` + seconds + `; echo "$n ends $w" >> ran`
}

// secondsOf returns how long the command of an attempt lasts. Most last longer than another node needs to take the
// user.
func secondsOf(name string) string {
	if turn := turnOf(name); turn < 2 || turn == 4 {
		return "5"
	}
	return "0.3"
}

// workModel asks for one command, and then says what it was told of it. If the call was aborted, it looks
// whether the command has begun, and makes the call again if not. It takes its time, so that parts of the
// service die meanwhile. A prompt that is not of an attempt is only answered.
func workModel(seconds func(name string) string, begun func(name string) bool) providertest.Turn {
	return providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		name := string(attemptName.Find(r.Body))
		if name == "" {
			return answerOf(r, nil)
		}
		thought := make(chan struct{})
		time.AfterFunc(rand.N(time.Second), func() { close(thought) })
		output := ""
		if outputs := r.ToolOutputs(); len(outputs) > 0 {
			output = outputs[len(outputs)-1].Output
		}
		cut := strings.HasPrefix(output, "interrupted") || strings.HasPrefix(output, "aborted")
		if output == "" || cut && !begun(name) {
			turn := providertest.Call(providertest.Shell(name, "sh", "-c", script(name, seconds(name))))
			turn.Wait = thought
			return turn
		}
		var turn providertest.Turn
		switch {
		case strings.Contains(output, `"exit_code":0`):
			turn = providertest.Say("done " + name + " ran")
		case cut:
			turn = providertest.Say("done " + name + " interrupted")
		default:
			turn = providertest.Say("done " + name + " not run: " + output)
		}
		turn.Wait = thought
		return turn
	}}
}

// hasBegun reports whether the command of an attempt has written that it begins.
func (s *site) hasBegun(name string) bool {
	text, err := os.ReadFile(filepath.Join(s.top, attemptName.FindStringSubmatch(name)[1], "ran"))
	return err == nil && strings.Contains(string(text), name+" begins ")
}

// TestChaos lets users with several clients work with a service whose parts die, and
// checks from what is left that each task ended as its user was told, that no question had two
// answers, that no command ran twice, that no worker worked next to another one of its user, and
// that no user saw anything of another.
func TestChaos(t *testing.T) {
	t.Parallel()
	withDisks(t, func(t *testing.T) {
		s := startSite(t, nightly.Number(20, 100), "3s", secondsOf)
		s.workAndFail()
		s.end()
	})
}

// end ends the nodes, checks what is left of all users, and prints how their attempts ended.
func (s *site) end() {
	s.t.Helper()
	s.t.Logf("all tasks have ended after %v", time.Since(s.begun).Round(time.Millisecond))
	for _, m := range s.nodes {
		m.signal(syscall.SIGTERM)
	}
	for _, m := range s.nodes {
		m.awaitEnd()
	}
	count := map[end]int{}
	for _, p := range s.persons {
		s.check(p)
		for _, a := range p.attempts {
			count[a.end]++
			if a.end == failed || a.end == ranOnce || a.end == lost {
				s.t.Logf("%s %s: %.900s", a.name, a.end, a.told)
			}
		}
	}
	s.t.Logf("the ends of %d users: %v", len(s.persons), count)
}

// check checks what is left of a user: in NATS, and in the user's folder.
func (s *site) check(p *person) {
	t := s.t
	t.Helper()
	rollouts, record := s.download(p)
	h := &history.History{}
	asked := map[string]string{} // the conversation of each prompt
	of := map[string]string{}    // the prompt of each conversation
	for _, path := range rollouts {
		must.Check(t, h.ReadRollout(path))
		text := must.Get(os.ReadFile(path))(t)
		name := string(attemptName.Find(text))
		if other := asked[name]; name != "" && other != "" { // each prompt is sent once
			t.Errorf("%s: two conversations have the prompt of %s: %s and %s", p.name, name, filepath.Base(other), filepath.Base(path))
		}
		asked[name], of[threadOf(path)] = path, name
	}
	must.Check(t, h.ReadRecord(record))
	text, err := os.ReadFile(filepath.Join(s.top, p.name, "ran"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	p.see(string(text))
	effects, wrong := readRan(string(text))
	for _, w := range wrong {
		t.Errorf("%s: %s:\n%s", p.name, w, text)
	}
	calls := map[string]*history.Call{} // by attempt: the last of its calls that began, or one that did not
	for _, c := range h.Calls {
		name, _, _ := strings.Cut(c.Call, "_") // the engine adds _2 to the id of a call that is made again
		first := calls[name]
		if first != nil && first.Thread != c.Thread {
			t.Errorf("%s: two conversations have the call %s", p.name, name)
		}
		if first == nil || c.Begun > 0 && (first.Begun == 0 || cmp.Or(cmp.Compare(len(c.Call), len(first.Call)), cmp.Compare(c.Call, first.Call)) > 0) {
			calls[name] = c
		}
	}
	for name, c := range calls {
		c.Effects = effects[name]
	}
	attempts := map[string]*attempt{}
	for _, a := range p.attempts {
		c := calls[a.name]
		attempts[a.name] = a
		if a.task != "" {
			thread, _, _ := strings.Cut(a.task, ".")
			h.Tasks = append(h.Tasks, history.Task{Name: a.name, Thread: thread, Ended: a.status != "", Told: a.told})
		}
		if wrong := a.wrong(c, effects[a.name]); wrong != "" {
			t.Errorf("%s: %s: %+v, %+v", a.name, wrong, a, c)
		}
		delete(effects, a.name)
	}
	for name, n := range effects {
		t.Errorf("%s: nobody called %s, and it ran %d times", p.name, name, n)
	}
	for _, f := range h.Check() {
		thread, _, _ := strings.Cut(f.What, " ")
		a := attempts[of[thread]]
		if a != nil && a.left() && slices.Contains([]history.Kind{history.NoEnd, history.Unanswered, history.Undecided, history.Unsaid}, f.Kind) {
			continue
		}
		if a != nil && a.end == ranOnce && f.Kind == history.Unsaid { // its result has the command, which ran
			continue
		}
		t.Errorf("%s: %v: %+v", p.name, f, a)
	}
}

// threadOf returns the id of the conversation of a rollout's file.
func threadOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	return name[max(0, len(name)-len("01a205cc-f139-7411-b394-2d75dce00096")):]
}

// left reports whether the server of a call without a task may have died, so that nobody goes on
// with its turn. The client knows: it got no answer, or one that says that the turn was aborted or
// that the command may have run.
func (a *attempt) left() bool {
	return a.task == "" && (a.end == lost || a.end == failed || a.end == ranOnce || strings.Contains(a.told, mayHaveRun))
}

// readRan counts how often each command began, from what all commands of a user have written. It
// says where a worker works after the next one of its user.
func readRan(text string) (effects map[string]int, wrong []string) {
	effects = map[string]int{}
	over, worker := map[string]bool{}, ""
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 3 {
			wrong = append(wrong, fmt.Sprintf("a command has written %q", line))
			continue
		}
		if words[1] == "begins" {
			effects[words[0]]++
		}
		if words[2] == worker {
			continue
		}
		over[worker], worker = true, words[2]
		if over[worker] {
			wrong = append(wrong, "two workers work at the same time, see "+strings.TrimSpace(line))
		}
	}
	return effects, wrong
}

func (a *attempt) wrong(c *history.Call, effects int) string {
	switch {
	case effects > 1:
		return "it ran twice"
	case a.gone:
		return "its task is gone"
	case (a.end == ran || a.end == ranOnce) && effects != 1:
		return "it was reported as run"
	case a.end == notRun && effects != 0:
		return "it was reported as not run"
	case a.end == refused && (effects != 0 || c != nil):
		return "it was refused, and had an effect"
	case effects > 0 && !slices.Contains(a.says, "accept"):
		return "nobody accepted it"
	case a.end == notRun && !slices.Contains(a.says, "decline"):
		return "nobody declined it, and it was reported as not run"
	case a.end == failed && effects > 0:
		return "it ran, and the client was not told"
	}
	return ""
}

// download writes what NATS has of a user to a folder. It returns the conversations, and the
// decisions in their order.
func (s *site) download(p *person) (rollouts []string, record string) {
	t := s.t
	t.Helper()
	ctx := clustertest.Bounded(t)
	dir := t.TempDir()
	var kept *jetstore.Store
	var err error
	clustertest.Until(t, "the state of "+p.name+" cannot be read", func() bool { // a server that was started again may not be ready
		kept, err = jetstore.Open(ctx, s.stream, jetstore.Options{User: p.name, Epoch: math.MaxInt64})
		return err == nil && s.checkEpochs(ctx, p) == nil
	})
	var decisions []string
	list, err := kept.List(ctx, "")
	for ; len(list) > 0; list, err = kept.List(ctx, list[len(list)-1].Name) {
		for _, info := range list {
			var text []byte
			for more := true; more; {
				part, err := kept.Read(ctx, info.Name, int64(len(text)), worker.MaxData)
				must.OK(t, err)
				text, more = append(text, part...), len(part) > 0
			}
			p.see(string(text))
			switch {
			case strings.HasSuffix(info.Name, ".jsonl") && strings.Contains(info.Name, "/rollout-"):
				path := filepath.Join(dir, filepath.Base(info.Name))
				must.OK(t, os.WriteFile(path, text, 0o600))
				rollouts = append(rollouts, path)
			case strings.HasPrefix(info.Name, "codex-mcp/decisions/"):
				decisions = append(decisions, slices.Collect(strings.Lines(string(text)))...)
			}
		}
	}
	must.OK(t, err)
	slices.SortStableFunc(decisions, func(a, b string) int {
		first, _ := textOf(a, `"time":"`)
		second, _ := textOf(b, `"time":"`)
		return strings.Compare(strings.TrimSuffix(first, "Z"), strings.TrimSuffix(second, "Z"))
	})
	record = filepath.Join(dir, "record")
	must.OK(t, os.WriteFile(record, []byte(strings.Join(decisions, "")), 0o600))
	return rollouts, record
}

// checkEpochs checks that no node has written to the state of a user after a node with a later lease. It returns why that
// cannot be read yet.
func (s *site) checkEpochs(ctx context.Context, p *person) error {
	s.t.Helper()
	stream, err := s.stream.Stream(ctx, "codexmcp_state_"+p.name)
	if err != nil {
		return err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return err
	}
	if n := info.Config.Replicas; n != natsServers { // which is usual, and stays although one writer wanted less
		s.t.Errorf("the state of %s has %d replicas", p.name, n)
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{HeadersOnly: true})
	if err != nil {
		return err
	}
	batch, err := consumer.Fetch(int(info.State.Msgs), jetstream.FetchMaxWait(bounded))
	if err != nil {
		return err
	}
	var last, count uint64
	for m := range batch.Messages() {
		count++
		epoch, err := strconv.ParseUint(m.Headers().Get("Codexmcp-Epoch"), 10, 64)
		if err != nil || epoch < last {
			s.t.Errorf("%s: a node with the epoch %d has written %s after one with %d (%v)", p.name, epoch, m.Subject(), last, err)
		}
		last = max(last, epoch)
	}
	if count != info.State.Msgs {
		return fmt.Errorf("%d of %d messages: %w", count, info.State.Msgs, batch.Error())
	}
	return batch.Error()
}
