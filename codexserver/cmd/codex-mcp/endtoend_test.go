package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var (
	update = flag.Bool("update", false, "rewrite the server sections of the transcripts")
	whole  = flag.Bool("whole", false, "play every attack at every entry, and every transcript through every relay")
)

// TestEndToEnd plays the transcripts in testdata against the program and a
// scripted model. Each is a txtar archive:
//
//	comment        what it shows, and the source of the expectation
//	args           more arguments for the program, one a line
//	config.toml    in place of the usual configuration
//	model.json     the model's turns
//	script         what the client does, see play
//	server         all messages of the server, as lanes; -update rewrites it
func TestEndToEnd(t *testing.T) {
	t.Parallel()
	eachTranscript(t, func(t *testing.T, file string, a *txtar.Archive) {
		got := playArchive(t, a, start)
		want := section(a, "server")
		if *update {
			setSection(a, "server", got)
			if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the server sent (-want +got):\n%s", diff)
		}
	})
}

// relayed are the transcripts that the gate also plays through another process: messages in both
// directions, invalid ones, the end of the input in a turn, and calls at once.
var relayed = []string{"cancel_stream", "codex_reply_ok", "codex_two_at_once", "eof_mid_turn", "exec_both", "init_basic", "malformed_lines", "no_answer", "no_capability"}

// eachRelayed calls f with each archive in relayed, or with all if whole.
func eachRelayed(t *testing.T, f func(t *testing.T, file string, a *txtar.Archive)) {
	if *whole {
		eachTranscript(t, f)
		return
	}
	for _, name := range relayed {
		playTranscript(t, filepath.Join("testdata", name+".txtar"), f)
	}
}

// eachTranscript calls f with each archive in testdata, in subtests.
func eachTranscript(t *testing.T, f func(t *testing.T, file string, a *txtar.Archive)) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		playTranscript(t, file, f)
	}
}

// playTranscript calls f with the archive in a file, in a subtest.
func playTranscript(t *testing.T, file string, f func(t *testing.T, file string, a *txtar.Archive)) {
	t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
		t.Parallel()
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f(t, file, a)
	})
}

const usualConfig = `model = "mock-model"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
model_provider = "mock_provider"
[model_providers.mock_provider]
name = "Mock provider for test"
base_url = "$BASE_URL"
wire_api = "chat"
request_max_retries = 0
stream_max_retries = 0
`

// launcher starts the program for a client, with arguments for its server.
type launcher func(t *testing.T, f folders, args ...string) *process

func playArchive(t *testing.T, a *txtar.Archive, start launcher) string {
	f := newFolders(t)
	model := providertest.New()
	t.Cleanup(model.Close)
	if raw := section(a, "model.json"); raw != "" {
		var turns []turn
		if err := json.Unmarshal([]byte(raw), &turns); err != nil {
			t.Fatalf("model.json: %v", err)
		}
		for _, m := range turns {
			model.Add(m.scripted())
		}
	}
	words := strings.NewReplacer("$CODEX_HOME", f.home, "$CWD", f.cwd, "$BASE_URL", model.BaseURL())
	config := section(a, "config.toml")
	if config == "" {
		config = usualConfig
	}
	writeConfig(t, f.home, words.Replace(config))
	args := []string{"-engine", "native"}
	for arg := range strings.Lines(section(a, "args")) {
		args = append(args, words.Replace(strings.TrimSpace(arg)))
	}
	p := start(t, f, args...)
	play(p, f, model, words.Replace(section(a, "script")))
	p.stdin.Close()
	p.wait()
	return lanes(p.messages(), f, model.BaseURL())
}

// play runs a script with one step on each line:
//
//	> MESSAGE        send it
//	< PATTERN        wait for a message that contains it and that no earlier step has matched
//	! PATTERN        no message so far contains it
//	save NAME PATH   keep a member of the message that matched last, as ${NAME}
//	requests N       wait until the model has received N requests
//	close            close the program's standard input
//	signal NAME      send TERM or INT
//	exit CODE        wait for the end of the program
//	exists FILE      a file exists in the work folder
//	absent FILE      it does not exist
func play(p *process, f folders, model *providertest.Server, script string) {
	t := p.t
	t.Helper()
	saved := map[string]string{}
	seen := map[int]bool{}
	var last map[string]any
	for step := range strings.Lines(script) {
		step = os.Expand(strings.TrimSpace(step), func(name string) string { return saved[name] })
		word, rest, _ := strings.Cut(step, " ")
		switch word {
		case "", "#":
		case ">":
			p.send(rest)
		case "<":
			last = p.expect(pattern(t, rest), seen)
		case "!":
			for _, m := range p.messages() {
				if contains(m, pattern(t, rest)) {
					t.Errorf("%s: the server sent %s", step, line(m))
				}
			}
		case "save":
			name, path, _ := strings.Cut(rest, " ")
			saved[name] = dig(t, last, path)
		case "requests":
			var n int
			fmt.Sscan(rest, &n)
			awaitRequests(t, model, n)
		case "close":
			p.stdin.Close()
		case "signal":
			p.cmd.Process.Signal(map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt}[rest])
		case "exit":
			if code := p.wait(); fmt.Sprint(code) != rest {
				t.Errorf("exit status %d, not %s", code, rest)
			}
		case "exists", "absent":
			_, err := os.Stat(filepath.Join(f.cwd, rest))
			if (err == nil) != (word == "exists") {
				t.Errorf("%s: %v", step, err)
			}
		default:
			t.Fatalf("unknown step %q", step)
		}
	}
}

func pattern(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("pattern %s: %v", text, err)
	}
	return m
}

// dig finds a member by dotted path and returns it as JSON text.
func dig(t *testing.T, m map[string]any, path string) string {
	t.Helper()
	var v any = m
	for name := range strings.SplitSeq(path, ".") {
		o, ok := v.(map[string]any)
		if v = o[name]; !ok || v == nil {
			t.Fatalf("no %s in %s", path, line(m))
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func awaitRequests(t *testing.T, model *providertest.Server, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := model.Await(ctx, n); err != nil {
		t.Fatal(err)
	}
}

// turn is a turn of model.json.
type turn struct {
	Match     string
	Text      []string
	ToolCalls []struct {
		ID, Name  string
		Arguments map[string]any
	} `json:"tool_calls"`
	Hang   bool // never answers
	Status int
	Body   string
}

func (m turn) scripted() providertest.Turn {
	t := providertest.Turn{Match: m.Match, Text: m.Text, Status: m.Status, Body: m.Body}
	for _, c := range m.ToolCalls {
		t.ToolCalls = append(t.ToolCalls, providertest.Tool(c.ID, c.Name, c.Arguments))
	}
	if m.Hang {
		t.Wait = make(chan struct{}) // until the provider is closed
	}
	return t
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func setSection(a *txtar.Archive, name, text string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(text)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
}
