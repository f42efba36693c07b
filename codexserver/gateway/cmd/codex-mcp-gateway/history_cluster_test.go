//go:build cluster

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	principals   = flag.Int("principals", 5, "the `number` of users of the service")
	tasksOfEach  = flag.Int("tasks", 7, "the `number` of tasks of each user")
	faultsOfKind = flag.Int("faults", 1, "how often each kind of fault happens")
)

// fault is a part of the service that fails.
type fault struct {
	name  string
	begin func()
	end   func()
}

// workModel asks for one command, which writes the name of the attempt, and then says what it was
// told of it.
func workModel() providertest.Turn {
	return providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		name := string(attemptName.Find(r.Body))
		outputs := r.ToolOutputs()
		if len(outputs) == 0 {
			return providertest.Call(providertest.Shell(name, "sh", "-c", "echo "+name+" >> ran; sleep 0.3"))
		}
		switch output := outputs[0].Output; {
		case strings.Contains(output, `"exit_code":0`):
			return providertest.Say("done " + name + " ran")
		case strings.HasPrefix(output, "interrupted") || strings.HasPrefix(output, "aborted"):
			return providertest.Say("done " + name + " interrupted")
		default:
			return providertest.Say("done " + name + " not run: " + output)
		}
	}}
}

// TestClusterHistory lets users with several clients work with a service whose parts die, and
// checks from what is left that each task ended as its user was told, that no question had two
// answers, that no command ran twice, and that no user saw anything of another.
func TestClusterHistory(t *testing.T) { inNetwork(t, clusterHistory) }

func clusterHistory(t *testing.T) {
	servertest.NeedEnclosure(t)
	top := servertest.Outside(t)
	model := providertest.New(workModel())
	t.Cleanup(model.Close)
	var persons []*person
	var users strings.Builder
	for i := range *principals {
		token, hash := access.NewToken()
		p := &person{t: t, name: fmt.Sprintf("u%02d", i), token: token, kind: kindOf(i)}
		if err := os.Mkdir(filepath.Join(top, p.name), 0o700); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&users, "\n[http.principals.%s]\ntokens = [%q]\nfolders = [%q]\nlimits.requests = 100000\n", p.name, hash, filepath.Join(top, p.name))
		persons = append(persons, p)
	}
	begun := time.Now()
	s := startMachines(t, top, users.String(), model)
	s.meet(persons)
	t.Logf("the service runs after %v", time.Since(begun).Round(time.Millisecond))
	begun = time.Now()
	s.workAndFail(persons)
	s.followLost(persons)
	s.strangers(persons)
	t.Logf("all tasks have ended after %v", time.Since(begun).Round(time.Millisecond))
	for _, m := range s.nodes {
		if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	for _, m := range s.nodes {
		if code := m.wait(); code != 0 {
			t.Errorf("%s ended with status %d", m.name, code)
		}
	}
	for _, p := range persons {
		s.check(p)
	}
	tally(t, persons)
}

// faults returns all faults in random order.
func (s *machines) faults() (all []fault) {
	kill := func(name string, of []*machine) fault {
		var m *machine
		return fault{name, func() { m = of[rand.N(len(of))]; m.kill(s.t) }, func() { m.begin(s.t) }}
	}
	pull := func(name string, of []*machine, cables int) fault {
		var m *machine
		return fault{name, func() { m = of[rand.N(len(of))]; m.pull(true, cables) }, func() { m.pull(false, cables) }}
	}
	for range *faultsOfKind {
		all = append(all, kill("a node is killed", s.nodes), kill("a NATS server is killed", s.nats), kill("a front is killed", s.fronts),
			pull("a node is cut off from NATS", s.nodes, 1), pull("a front is cut off from NATS", s.fronts, 1),
			pull("a node is cut off from everything", s.nodes, 2), pull("a front is cut off from everything", s.fronts, 2))
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// workAndFail begins tasks before each fault, and waits for all tasks.
func (s *machines) workAndFail(persons []*person) {
	s.t.Helper()
	all := s.faults()
	phases := make([]chan struct{}, len(all))
	for i := range phases {
		phases[i] = make(chan struct{})
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(len(all))*faultTime+patience)
	defer cancel()
	var working sync.WaitGroup
	for _, p := range persons {
		turn := make(chan struct{}, 1) // an official client has one task at a time
		for task := range *tasksOfEach {
			working.Go(func() {
				select {
				case <-phases[task*len(phases)/(*tasksOfEach)]:
				case <-ctx.Done():
				}
				if p.kind != ownClient {
					turn <- struct{}{}
					defer func() { <-turn }()
				}
				p.work(ctx, task)
			})
		}
	}
	for i, f := range all {
		before := s.ran()
		close(phases[i])
		begun := time.Now()
		if rand.N(3) > 0 { // while commands run
			for s.ran() == before && time.Since(begun) < faultTime {
				<-time.After(time.Millisecond)
			}
		}
		<-time.After(rand.N(200 * time.Millisecond))
		after := time.Since(begun)
		s.t.Logf("%v after tasks began, %s", after.Round(time.Millisecond), f.name)
		f.begin()
		<-time.After(faultTime)
		f.end()
	}
	working.Wait()
}

// ran returns how much all commands have written.
func (s *machines) ran() (size int64) {
	paths, err := filepath.Glob(filepath.Join(s.top, "u[0-9]*", "ran"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return size
}

// faultTime is how long a fault lasts. It is longer than a lease.
const faultTime = 4 * time.Second

// followLost follows the tasks whose ids their clients did not get, to their ends.
func (s *machines) followLost(persons []*person) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var following sync.WaitGroup
	for _, p := range persons {
		known := map[string]bool{}
		for _, a := range p.attempts {
			known[a.task] = true
		}
		for _, node := range s.nodes {
			home := filepath.Join(s.top, node.name, "codex-mcp", "principals", p.name, "codex-mcp")
			for _, at := range []string{filepath.Join(home, "tasks"), filepath.Join(home, "replaced", "*", "tasks"), filepath.Join(home, "replaced", "codex-mcp", "tasks")} {
				paths, err := filepath.Glob(filepath.Join(at, "task-*.json"))
				if err != nil {
					s.t.Fatal(err)
				}
				for _, path := range paths {
					id := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "task-"), ".json")
					if !known[id] {
						known[id] = true
						following.Go(func() { s.followOne(ctx, p, id) })
					}
				}
			}
		}
	}
	following.Wait()
}

func (s *machines) followOne(ctx context.Context, p *person, id string) {
	a := &attempt{task: id}
	p.follow(ctx, a)
	if a.end == lost {
		s.t.Errorf("%s: the task %s, whose id the client did not get, has no end", p.name, id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.attempts {
		if strings.Contains(a.told, "done "+known.name+" ") || known.name == a.name {
			a.name = known.name
			a.settle(a.told)
			known.task, known.status, known.end, known.told, known.says = a.task, a.status, a.end, a.told, append(known.says, a.says...)
		}
	}
}

// strangers lets each user try the tasks of all others.
func (s *machines) strangers(persons []*person) {
	s.t.Helper()
	tried := 0
	for _, owner := range persons {
		for _, a := range owner.attempts {
			if a.task == "" {
				continue
			}
			for _, other := range persons {
				if other == owner {
					continue
				}
				for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
					params := `"taskId":"` + a.task + `"`
					if method == "tasks/update" {
						params += `,"inputResponses":{}`
					}
					if status, body := s.insist(other, tried, method, a.task, params); !strings.Contains(body, "no such task") {
						s.t.Errorf("%s of %s's task by %s: %d %s", method, owner.name, other.name, status, body)
					}
					tried++
				}
			}
			if status, body := s.insist(owner, tried, "tasks/get", a.task, `"taskId":"`+a.task+`"`); a.status != "" && !strings.Contains(body, `"status":"`+a.status+`"`) {
				s.t.Errorf("%s's own task: %d %s", owner.name, status, body)
			}
		}
	}
	s.t.Logf("%d requests for tasks of others", tried)
}

// insist sends a request until a worker answers it: a lease may have been lost just now.
func (s *machines) insist(p *person, front int, method, name, params string) (status int, body string) {
	s.t.Helper()
	until(s.t, "nobody answers "+p.name, func() bool {
		var err error
		status, body, err = p.send(s.t.Context(), s.fronts[front%frontCount].url, method, name, params)
		return err == nil && status < http.StatusInternalServerError
	})
	return status, body
}

// check checks what is left of a user: in NATS, and in the user's folder.
func (s *machines) check(p *person) {
	t := s.t
	t.Helper()
	rollouts, record := s.download(p)
	h := &history.History{}
	for _, path := range rollouts {
		if err := h.ReadRollout(path); err != nil {
			t.Error(err)
		}
	}
	if err := h.ReadRecord(record); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(s.top, p.name, "ran"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	p.see(string(text))
	effects := map[string]int{}
	for line := range strings.Lines(string(text)) {
		effects[strings.TrimSpace(line)]++
	}
	calls := map[string]*history.Call{}
	for _, c := range h.Calls {
		if calls[c.Call] != nil {
			t.Errorf("%s: two conversations have the call %s", p.name, c.Call)
		}
		c.Effects, calls[c.Call] = effects[c.Call], c
	}
	tasks, unanswered := map[string]bool{}, false // the conversations of tasks; whether a client got no answer
	for _, a := range p.attempts {
		c := calls[a.name]
		if a.task != "" {
			thread, _, _ := strings.Cut(a.task, ".")
			tasks[thread] = true
			h.Tasks = append(h.Tasks, history.Task{Name: a.name, Thread: thread, Ended: a.status != "", Told: a.told})
		} else if a.end == lost || a.end == failed || a.end == ranOnce {
			unanswered = true
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
		if unanswered && !tasks[thread] && slices.Contains([]history.Kind{history.NoEnd, history.Unanswered, history.Undecided}, f.Kind) {
			continue // as with every call without a task whose server dies
		}
		t.Errorf("%s: %v", p.name, f)
	}
}

// wrong says what was wrong about what the client was told.
func (a *attempt) wrong(c *history.Call, effects int) string {
	switch {
	case effects > 1:
		return "it ran twice"
	case (a.end == ran || a.end == ranOnce) && effects != 1:
		return "it was reported as run"
	case a.end == notRun && effects != 0:
		return "it was reported as not run"
	case a.end == refused && (effects != 0 || c != nil):
		return "it was refused, and had an effect"
	case effects > 0 && !slices.Contains(a.says, "accept"):
		return "nobody accepted it"
	case a.end == failed && effects > 0:
		return "it ran, and the client was not told"
	}
	return ""
}

// download writes what NATS has of a user to a folder. It returns the conversations, and the
// decisions in their order.
func (s *machines) download(p *person) (rollouts []string, record string) {
	t := s.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := t.TempDir()
	var urls []string
	for _, server := range s.nats {
		urls = append(urls, "tls://"+server.url)
	}
	conn, err := nats.Connect(strings.Join(urls, ","), nats.RootCAs(s.certificate), nats.ClientCert(s.certificate, s.certificate))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	var kept *jetstore.Store
	until(t, "the state of "+p.name+" cannot be read", func() bool { // a server that was started again may not be ready
		kept, err = jetstore.Open(ctx, js, jetstore.Options{User: p.name, Replicas: natsServers})
		return err == nil
	})
	var decisions []string
	for after := ""; ; {
		list, err := kept.List(ctx, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range list {
			after = info.Name
			var text []byte
			for {
				part, err := kept.Read(ctx, info.Name, int64(len(text)), store.MaxData)
				if err != nil {
					t.Fatal(err)
				}
				if len(part) == 0 {
					break
				}
				text = append(text, part...)
			}
			p.see(string(text))
			switch {
			case strings.HasSuffix(info.Name, ".jsonl") && strings.Contains(info.Name, "/rollout-"):
				path := filepath.Join(dir, filepath.Base(info.Name))
				if err := os.WriteFile(path, text, 0o600); err != nil {
					t.Fatal(err)
				}
				rollouts = append(rollouts, path)
			case strings.HasPrefix(info.Name, "codex-mcp/decisions/"):
				decisions = append(decisions, slices.Collect(strings.Lines(string(text)))...)
			}
		}
		if len(list) == 0 {
			break
		}
	}
	slices.SortStableFunc(decisions, func(a, b string) int { return strings.Compare(timeOf(a), timeOf(b)) })
	record = filepath.Join(dir, "record")
	if err := os.WriteFile(record, []byte(strings.Join(decisions, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return rollouts, record
}

// timeOf returns the time of a decision.
func timeOf(line string) string {
	_, at, _ := strings.Cut(line, `"time":"`)
	at, _, _ = strings.Cut(at, `Z"`)
	return at
}

// tally prints how the attempts ended, by client.
func tally(t *testing.T, persons []*person) {
	count := map[string]map[end]int{}
	for _, p := range persons {
		if count[p.kind] == nil {
			count[p.kind] = map[end]int{}
		}
		for _, a := range p.attempts {
			count[p.kind][a.end]++
			if a.end == failed || a.end == ranOnce || a.end == lost || a.end == refused {
				t.Logf("%s %s: %.900s", a.name, a.end, a.told)
			}
		}
	}
	for _, kind := range []string{ownClient, typescript, gosdk} {
		t.Logf("%s: %v", kind, count[kind])
	}
}
