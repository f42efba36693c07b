package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/test/interop/internal/wire"
)

var everyHost = flag.Bool("hosts", false, "TestHosts also runs the hosts that are programs, and calls that take longer than hosts wait")

// longTurn is how long the long calls take.
const longTurn = 78 * time.Second

// TestHosts runs hosts with a scripted model that hands over a task and continues it with
// what it received. The tables of testdata/hosts.txt are what the run saw.
func TestHosts(t *testing.T) {
	t.Parallel()
	server := ours(t)
	short, long := &rows{}, &rows{}
	t.Run("hosts", func(t *testing.T) {
		for i, h := range hosts {
			if h.program && !*everyHost {
				continue // .ci/run hosts
			}
			release := releaseBelow(t, h.folder(), h.pkg)
			t.Run(h.name, func(t *testing.T) {
				t.Parallel()
				short.put(i, slices.Insert(delegates(t, server, h), 1, release))
			})
			if !*everyHost {
				continue
			}
			t.Run(h.name+", a long call", func(t *testing.T) {
				t.Parallel()
				long.put(2*i, waits(t, server, h, false))
			})
			if h.setting != "" {
				t.Run(h.name+", a long call with "+h.setting, func(t *testing.T) {
					t.Parallel()
					long.put(2*i+1, waits(t, server, h, true))
				})
			}
		}
	})
	if *everyHost {
		t.Run("one shared server", func(t *testing.T) { shareOne(t, server, "Copilot CLI", "Gemini CLI") })
		t.Run("Codex alone", func(t *testing.T) { execAlone(t, server) })
	}
	if t.Failed() {
		return
	}
	short.compare(t, "hosts", len(hosts), "| host | package | its name in `clientInfo` | speaks MCP | asks for progress | the question | what its model gets | of 40 lines |\n|---|---|---|---|---|---|---|---|\n")
	settings := 0
	for _, h := range hosts {
		if h.setting != "" {
			settings++
		}
	}
	long.compare(t, "long calls", len(hosts)+settings, "| host | a call of 78 seconds |\n|---|---|\n")
}

// rows are the rows of a table, by their place.
type rows struct {
	mu   sync.Mutex
	rows map[int]string
}

func (r *rows) put(place int, cells []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil {
		r.rows = map[int]string{}
	}
	r.rows[place] = "| " + strings.Join(cells, " | ") + " |\n"
}

// compare compares the rows with the table of that name in testdata/hosts.txt, which has n. Those that
// did not run are not compared.
func (r *rows) compare(t *testing.T, name string, n int, head string) {
	t.Helper()
	if len(r.rows) == n {
		for _, place := range slices.Sorted(maps.Keys(r.rows)) {
			head += r.rows[place]
		}
		compareDocument(t, hostsFile, name, head)
		return
	}
	text, err := os.ReadFile(hostsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.rows {
		if !strings.Contains(string(text), row) {
			t.Errorf("testdata/hosts.txt lacks this row, `go test -run '^TestHosts$' -hosts -update` in test/interop writes it:\n%s", row)
		}
	}
}

// delegates has the host hand over a task that asks for an approval, and continue the
// thread twice. The cells are what it showed and passed on.
func delegates(t *testing.T, server []string, h host) (cells []string) {
	const lines, width = 40, 1000
	var long strings.Builder
	for i := range lines {
		fmt.Fprintf(&long, "%*s\n", width-1, lineOf(i))
	}
	reply := func(output, prompt string) (string, *call) {
		thread := threadID.FindString(output)
		if thread == "" {
			return "I cannot continue.", nil
		}
		return "", &call{Tool: "codex-reply", Arguments: object{"threadId": thread, "prompt": prompt}}
	}
	r := h.play(t, server, false, func(task object, outputs []string) (string, *call) {
		switch len(outputs) {
		case 0:
			return "", &call{Tool: "codex", Arguments: task}
		case 1:
			return reply(outputs[0], "the second prompt")
		case 2:
			return reply(outputs[0], "the third prompt")
		}
		return "I am done.", nil
	}, providertest.Call(providertest.Shell("call_1", "touch", "made")), providertest.Say("the first answer"), providertest.Say("the second answer"), providertest.Say(long.String()))
	if len(r.outputs) != 3 {
		t.Fatalf("the host's model made %d calls, want 3", len(r.outputs))
	}
	if action := r.answered(); r.made != (action == "`accept`") {
		t.Errorf("the question was answered with %s, and the command ran: %v", action, r.made)
	}
	if !strings.Contains(r.outputs[1], "the second answer") {
		t.Errorf("codex-reply returned %q", r.outputs[1])
	}
	var kept []string
	for i := range lines {
		if strings.Contains(r.outputs[2], fmt.Sprintf("%*s", width-1, lineOf(i))) {
			kept = append(kept, strconv.Itoa(i+1))
		}
	}
	arrived := ranges(kept, lines)
	if !threadID.MatchString(r.outputs[2]) {
		arrived += "; not the thread"
	}
	return []string{
		h.name, "`" + r.client(server) + "`", wire.Negotiated(r.messages()), r.progress(), r.answered(),
		"`" + r.form() + "`", arrived,
	}
}

func lineOf(i int) string { return fmt.Sprintf("line %d", i+1) }

// waits has the host make a call of [longTurn]. If the call ends before its turn, its model waits
// for the thread. If patient, the host and the server are configured to take their time.
func waits(t *testing.T, server []string, h host, patient bool) (cells []string) {
	const answer = "the answer of the long turn"
	over := make(chan struct{})
	slow := providertest.Turn{Func: func(providertest.Request) providertest.Turn {
		time.AfterFunc(longTurn, func() { close(over) })
		return providertest.Turn{Text: []string{answer}, Wait: over}
	}}
	r := h.play(t, server, patient, func(task object, outputs []string) (string, *call) {
		if len(outputs) == 0 {
			return "", &call{Tool: "codex", Arguments: task}
		}
		last := outputs[len(outputs)-1]
		if strings.Contains(last, answer) || !stillRuns(last) || len(outputs) > 9 {
			return "I am done.", nil
		}
		return "", &call{Tool: "codex-wait", Arguments: object{"threadIds": []string{threadID.FindString(last)}, "seconds": 20}}
	}, slow)
	name := h.name
	if patient {
		name += ", " + h.setting + " and `calls.patience=0`"
	}
	if len(r.outputs) == 0 {
		t.Fatal("the host's model received no result")
	}
	last := r.outputs[len(r.outputs)-1]
	if !strings.Contains(last, answer) {
		t.Errorf("the last of %d calls returned %q", len(r.outputs), last)
	}
	if len(r.outputs) == 1 {
		return []string{name, "is answered"}
	}
	took := int(r.firstCall(t).Round(5 * time.Second).Seconds())
	return []string{name, fmt.Sprintf("ends after %d seconds; `codex-wait` returns the answer", took)}
}

// stillRuns reports whether a result says how to wait for a turn that runs on.
func stillRuns(output string) bool {
	return threadID.MatchString(output) && strings.Contains(output, "codex-wait")
}

var threadID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// play runs the host to its end. The turns are those of the server's model.
func (h host) play(t *testing.T, server []string, patient bool, next func(task object, outputs []string) (string, *call), turns ...providertest.Turn) hostRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longTurn+5*limit)
	defer cancel()
	dir := t.TempDir()
	m := &meeting{model: providertest.New(turns...), cwd: filepath.Join(dir, "work"), path: filepath.Join(dir, "trace")}
	defer m.model.Close()
	home := filepath.Join(dir, "home")
	for _, d := range []string{m.cwd, filepath.Join(home, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	task := object{"prompt": "the first prompt", "cwd": m.cwd, "approval-policy": "untrusted", "sandbox": "danger-full-access"}
	model := newHostModel(func(outputs []string) (string, *call) { return next(task, outputs) })
	defer model.close()
	s := hostSetup{
		setup: setup{
			Command: slices.Concat(server, []string{"--engine", "native", "--trace", m.path}), Cwd: m.cwd,
			Env: map[string]string{"CODEX_HOME": newHome(t, m.model, "chat"), "HOME": home, "PATH": os.Getenv("PATH")},
		},
		Patient: patient, pkg: below(h.folder(), h.pkg), openai: model.openai.BaseURL(), gemini: model.gemini.URL, home: home, prompt: "Please delegate the task.",
	}
	if patient {
		s.Command = append(s.Command, "-c", "calls.patience=0")
	}
	cmd := h.command(ctx, t, s)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	for _, p := range leftBehind(ctx, t, home) {
		t.Errorf("the host left a process behind: %s", p)
	}
	outputs, over, faults := model.heard()
	if err != nil || !over || len(faults) > 0 {
		t.Errorf("%v; the script came to its end: %v; %q", err, over, faults)
	}
	r := hostRun{outputs: outputs, turns: len(m.model.Requests())}
	for _, message := range m.wire(t) {
		hm := hostMessage{Message: message}
		if err := json.Unmarshal([]byte(message.Raw), &hm); err != nil {
			t.Fatal(err)
		}
		r.wire = append(r.wire, hm)
	}
	_, err = os.Stat(filepath.Join(m.cwd, "made"))
	r.made = err == nil
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the host printed:\n%s\nits model received %q, on the wire:\n%s", out.Bytes(), outputs, m.trace(t))
		}
	})
	return r
}

// leftBehind returns the processes with that home that remain for ten seconds, and ends them.
func leftBehind(ctx context.Context, t *testing.T, home string) (found []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		found = nil
		environments, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range environments {
			env, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(env, []byte("HOME="+home+"\x00")) {
				continue // another user's, or it has ended
			}
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")) // for the message
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
			if ctx.Err() != nil {
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill() // it may have ended
				}
			}
		}
		if len(found) == 0 || ctx.Err() != nil {
			return found
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// hostRun is what a run of a host showed.
type hostRun struct {
	outputs []string // what its model received, per call
	turns   int      // requests to the server's model
	wire    []hostMessage
	made    bool // the command of the first turn ran
}

// hostMessage is a message with the members that the tables need.
type hostMessage struct {
	wire.Message
	Params struct {
		Name       string `json:"name"`
		ClientInfo named  `json:"clientInfo"`
		Meta       struct {
			ClientInfo    named           `json:"io.modelcontextprotocol/clientInfo"`
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		InputResponses map[string]struct {
			Action string `json:"action"`
		} `json:"inputResponses"`
	} `json:"params"`
	Result struct {
		Action     string          `json:"action"`
		Content    []block         `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	} `json:"result"`
}

func (r hostRun) messages() (all []wire.Message) {
	for _, m := range r.wire {
		all = append(all, m.Message)
	}
	return all
}

// client returns the name that the host gives itself.
func (r hostRun) client(server []string) string {
	for _, m := range r.wire {
		if name := m.Params.ClientInfo.Name + m.Params.Meta.ClientInfo.Name; name != "" {
			return strings.ReplaceAll(name, server[0], "COMMAND")
		}
	}
	return ""
}

func (r hostRun) progress() string {
	for _, m := range r.wire {
		if !m.Sent && m.Method == "tools/call" && m.Params.Meta.ProgressToken != nil {
			return "yes"
		}
	}
	return "no"
}

// answered says how the question was answered.
func (r hostRun) answered() string {
	for _, m := range r.wire {
		for _, response := range m.Params.InputResponses {
			return "`" + response.Action + "`"
		}
		if !m.Sent && m.Result.Action != "" {
			return "`" + m.Result.Action + "`"
		}
	}
	return "cannot be asked"
}

// form is what the model received of the second result: 1 and 2 stand for its texts, {…} for
// its structured content.
func (r hostRun) form() string {
	form := r.outputs[1]
	for _, m := range r.wire {
		if !m.Sent || len(m.Result.Content) < 2 || m.Result.Content[0].Text != "the second answer" {
			continue
		}
		form = strings.ReplaceAll(form, string(m.Result.Structured), "{…}")
		for i, b := range m.Result.Content {
			escaped, _ := json.Marshal(b.Text) // of a string
			form = strings.ReplaceAll(form, string(escaped), fmt.Sprintf("%q", strconv.Itoa(i+1)))
			form = strings.ReplaceAll(form, b.Text, strconv.Itoa(i+1))
		}
	}
	return strings.ReplaceAll(form, "\n", "⏎")
}

// firstCall returns how long the first call was open.
func (r hostRun) firstCall(t *testing.T) time.Duration {
	t.Helper()
	var first hostMessage
	for _, m := range r.wire {
		switch {
		case first.ID == nil && !m.Sent && m.Method == "tools/call":
			first = m
		case first.ID != nil && m.Sent && m.Method == "" && bytes.Equal(m.ID, first.ID):
			return m.At.Sub(first.At)
		}
	}
	t.Fatal("the call of the host has no answer")
	return 0
}

// ranges writes the numbers of lines that arrived.
func ranges(kept []string, all int) string {
	switch len(kept) {
	case 0:
		return "none"
	case all:
		return "all"
	}
	first := 0
	for first < len(kept) && kept[first] == strconv.Itoa(first+1) {
		first++
	}
	last := len(kept) - first
	switch {
	case last == 0:
		return fmt.Sprintf("the first %d", first)
	case first == 0:
		return fmt.Sprintf("the last %d", last)
	}
	return fmt.Sprintf("the first %d and the last %d", first, last)
}
