package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv"
)

var (
	steps = flag.Int("steps", nightly.Number(2_000, 1_000_000), "do this `number` of random steps")
	seed  = flag.Uint64("seed", 0, "do the steps of this `seed` only; 0 means new seeds")
)

// forms are how clients are asked.
var forms = []elicit.Form{elicit.FormDecision, ""}

// perWorld is how many steps one server sees.
const perWorld = 100

// TestRandom does random steps: clients of every kind come, call, answer, repeat, cancel and
// leave, providers refuse and others go on, and time passes. The model finds no fault.
func TestRandom(t *testing.T) {
	if *seed != 0 {
		if faults, trace := play(t, *seed, perWorld, faulty{}); len(faults) > 0 {
			t.Errorf("%v\n%s", faults, trace)
		}
		return
	}
	if testing.Short() {
		*steps /= 10
	}
	count := tally{}
	for n := 0; n < *steps && !t.Failed(); n += perWorld {
		seed := rand.Uint64()&^15 | uint64(n/perWorld%16)
		faults, trace := play(t, seed, perWorld, faulty{})
		if len(faults) > 0 {
			t.Errorf("-seed %d: %v\n%s", seed, faults, trace)
		}
		count.add(trace)
	}
	if *steps >= 5000 && !t.Failed() {
		count.check(t)
	}
}

// TestFolderLostBeforeAnswer plays the history in which an approval was lost: a client accepts a lasting rule
// for t35.2 when the folder that the rule names has just gone, two milliseconds before the client whose turn
// it is leaves. The rule cannot be kept, and the approval counts once.
func TestFolderLostBeforeAnswer(t *testing.T) {
	removed := false
	faults, trace := play(t, 5723005682852112416, perWorld, faulty{answered: func(w *world, call string) {
		if call == "t35.2" {
			removed = os.RemoveAll(w.dir) == nil
		}
	}})
	if len(faults) > 0 || !removed {
		t.Errorf("removed %t, %v\n%s", removed, faults, trace)
	}
}

// play does random steps of a seed with a new server, and returns the faults and the steps.
func play(t *testing.T, seed uint64, steps int, f faulty) (faults []history.Fault, trace string) {
	dir, home := t.TempDir(), ""
	if seed%8 == 0 { // tasks and lasting rules, with their files, are slow
		home = testenv.Home(t)
	}
	synctest.Test(t, func(t *testing.T) {
		w := &world{model: newModel(), seed: seed, dir: dir, faults: f}
		faults = w.play(home, steps)
		trace = w.model.Trace()
	})
	return faults, trace
}

func (w *world) play(home string, steps int) []history.Fault {
	rules := configured
	if w.faults.rules != nil {
		rules = *w.faults.rules
	}
	server := codexserver.New(w, &codexserver.Options{
		Home: home, Record: w, Rules: rules, Desk: w, Approvals: elicit.Options{Timeout: 10 * time.Minute, Schema: forms[w.seed/8%2]},
		Changes: codexserver.ChangeOptions{Read: new(false)},
	})
	ctx, end := context.WithCancel(context.Background())
	defer end()
	principal := server.Principal(ctx, "me")
	r := rand.New(rand.NewPCG(w.seed, 0))
	var people []*person
	for n := range steps {
		if len(people) < 3 {
			people = append(people, w.join(principal, fmt.Sprintf("p%d", n), kind(r.IntN(int(kinds)))))
		}
		w.step(r, n, &people)
		if r.IntN(3) > 0 {
			synctest.Wait()
		}
	}
	time.Sleep(8 * time.Hour)
	synctest.Wait()
	faults := w.model.End() // before the clients leave: everything ends without that
	for _, p := range people {
		p.leave()
	}
	end()
	_ = principal.Close()
	return faults
}

func (w *world) step(r *rand.Rand, n int, people *[]*person) {
	at := r.IntN(len(*people))
	p := (*people)[at]
	request, turn := fmt.Sprintf("r%d", n), fmt.Sprintf("t%d", n)
	switch x := r.IntN(20); {
	case x < 7:
		arguments := map[string]any{"prompt": w.prompt(r, turn)}
		if r.IntN(4) == 0 {
			arguments["background"] = true
		}
		p.tool(request, turn, "codex", arguments)
	case x < 10:
		if thread := w.thread(r); thread != "" {
			p.tool(request, turn, "codex-reply", map[string]any{"prompt": w.prompt(r, turn), "conversationId": thread})
		}
	case x < 12:
		p.tool(request, "", "codex-wait", map[string]any{"seconds": r.IntN(40)})
	case x == 12:
		if thread := w.thread(r); thread != "" {
			p.tool(request, "", "codex-interrupt", map[string]any{"threadId": thread})
		}
	case x == 13:
		p.cancel(r.IntN(100))
	case x == 14:
		p.again(r.IntN(100))
	case x == 15:
		*people = append((*people)[:at], (*people)[at+1:]...)
		p.leave()
	default:
		time.Sleep([]time.Duration{time.Millisecond, time.Second, 30 * time.Second, 11 * time.Minute}[r.IntN(4)])
	}
}

func (w *world) thread(r *rand.Rand) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.threads) == 0 {
		return ""
	}
	return w.threads[len(w.threads)-1-r.IntN(min(4, len(w.threads)))]
}

func (w *world) prompt(r *rand.Rand, turn string) string {
	p := script{Turn: turn}
	for i := range 1 + r.IntN(4) {
		p.Acts = append(p.Acts, act{
			Call: fmt.Sprintf("%s.%d", turn, i), Command: commands[r.IntN(len(commands))],
			Wait: []time.Duration{0, 0, time.Second, time.Minute}[r.IntN(4)], With: r.IntN(3) == 0, Refused: r.IntN(6) == 0,
		})
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// tally counts what has happened in the steps, so that a run which tries nothing fails.
type tally map[string]int

var wanted = []string{
	"approved by client", "approved by desk", "approved by rule", "approved_for_session by client", "approved_for_session by desk",
	"approved_always by client", "approved_always by desk", "denied by client", "denied by desk", "denied by rule", "abort by client",
	"is gone", "is cancelled", `runs "ls"`, `"status":"completed","createdAt"`, "running", "the engine is told", "answers from now on",
}

func (c tally) add(trace string) {
	for _, words := range wanted {
		c[words] += strings.Count(trace, words)
	}
}

func (c tally) check(t *testing.T) {
	for _, words := range wanted {
		if c[words] == 0 {
			t.Errorf("it never happened: %s", words)
		}
	}
	t.Logf("%v", c)
}

// hostile answers the engine instead of its host.
type hostile struct {
	engine.Host
	exec func(ctx context.Context, host engine.Host, r approval.Command) elicit.Outcome
}

func (h hostile) Ask(ctx context.Context, s approval.Subject) elicit.Outcome {
	return h.exec(ctx, h.Host, s.(approval.Command))
}

func hostOf(exec func(ctx context.Context, host engine.Host, r approval.Command) elicit.Outcome) func(engine.Host) engine.Host {
	return func(h engine.Host) engine.Host { return hostile{h, exec} }
}

func swap(old, with string) func([]byte) [][]byte {
	return func(line []byte) [][]byte { return [][]byte{bytes.ReplaceAll(line, []byte(old), []byte(with))} }
}

func drop(word string) func([]byte) [][]byte {
	return func(line []byte) [][]byte {
		return slices.DeleteFunc([][]byte{line}, func(line []byte) bool { return bytes.Contains(line, []byte(word)) })
	}
}

var (
	firstCall = regexp.MustCompile(`"callId":"(t\d+)\.0"`)
	firstDone = regexp.MustCompile(` t\d+\.0=`)
	requestID = regexp.MustCompile(`"id":(\d+)`)
)

// TestModelFinds plants a fault in a server, its record or its connections. The model finds it in one of some runs.
func TestModelFinds(t *testing.T) {
	decide := func(d elicit.Decision) approval.Rules {
		return approval.Rules{Allow: configured.Allow, Deny: configured.Deny, Decide: func(context.Context, *approval.Request) (elicit.Outcome, bool) {
			return elicit.Outcome{Decision: d}, true
		}}
	}
	everything, nothing := decide(elicit.Approved), approval.Rules{Allow: configured.Allow}
	for name, tt := range map[string]struct {
		fault faulty
		want  history.Kind // what the model must find
	}{
		"the host approves what was denied": {faulty{host: hostOf(func(ctx context.Context, host engine.Host, r approval.Command) elicit.Outcome {
			out := host.Ask(ctx, r)
			if out.Decision == elicit.Denied {
				out.Decision = elicit.Approved
			}
			return out
		})}, history.Misheard},
		"the host asks twice": {faulty{host: hostOf(func(ctx context.Context, host engine.Host, r approval.Command) elicit.Outcome {
			host.Ask(ctx, r)
			return host.Ask(ctx, r)
		})}, history.Redecided},
		"the host asks about something else": {faulty{host: hostOf(func(ctx context.Context, host engine.Host, r approval.Command) elicit.Outcome {
			r.CallID += "0"
			return host.Ask(ctx, r)
		})}, history.Exchanged},
		"a rule that nobody made":        {faulty{rules: &everything}, history.Unjustified},
		"a rule that denies is left out": {faulty{rules: &nothing}, history.AfterDenial},
		"the record loses a line":        {faulty{record: func(line []byte) [][]byte { return nil }}, history.Undecided},
		"the record loses what begins":   {faulty{record: drop(`"event":"begins"`)}, history.Unrecorded},
		"the record loses how it ended":  {faulty{record: drop(`"event":"ends"`)}, history.Endless},
		"the record names no decision": {faulty{record: func(line []byte) [][]byte {
			if !bytes.Contains(line, []byte(`"event":"begins"`)) {
				return [][]byte{line}
			}
			return swap(`"decisionId"`, `"other"`)(line)
		}}, history.Unjustified},
		"the record names another place":    {faulty{record: swap(`"by":"client"`, `"by":"desk"`)}, history.Unjustified},
		"a refusal arrives as an approval":  {faulty{line: swap(`"action":"decline"`, `"action":"accept"`)}, history.Unjustified},
		"an approval arrives as a refusal":  {faulty{line: swap(`"action":"accept"`, `"action":"decline"`)}, history.Ignored},
		"once arrives as for the session":   {faulty{line: swap(`"decision":"approved"`, `"decision":"approved_for_session"`)}, history.Unjustified},
		"results are lost":                  {faulty{line: drop(`"structuredContent"`)}, history.Unanswered},
		"a question shows another question": {faulty{line: func(line []byte) [][]byte { return [][]byte{firstCall.ReplaceAll(line, []byte(`"callId":"$1.1"`))} }}, history.Unjustified},
		"a call arrives twice": {faulty{line: func(line []byte) [][]byte {
			if !bytes.Contains(line, []byte(`"codex"`)) || !bytes.Contains(line, []byte(`"tools/call"`)) || bytes.Contains(line, []byte(`"requestState"`)) {
				return [][]byte{line}
			}
			return [][]byte{line, requestID.ReplaceAll(line, []byte(`"id":9${1}`))}
		}}, history.TwoStarts},
		"a result says that it ran":     {faulty{line: swap("=not", "=ran")}, history.Missing},
		"a result says that it did not": {faulty{line: swap("=ran", "=not")}, history.Untold},
		"a result is another's":         {faulty{line: func(line []byte) [][]byte { return [][]byte{firstDone.ReplaceAll(line, []byte(" t0.0="))} }}, history.Foreign},
	} {
		t.Run(name, func(t *testing.T) {
			found := map[history.Kind]int{}
			for seed := range uint64(200) {
				faults, _ := play(t, seed*8+1, 25, tt.fault)
				for _, f := range faults {
					found[f.Kind]++
				}
				if found[tt.want] > 0 {
					return
				}
			}
			t.Errorf("found %v, want %q", found, tt.want)
		})
	}
}
