package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	codexclient "github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/google/go-cmp/cmp"
)

// TestFormFields reads the answers that a person types, and the schemas that servers send.
func TestFormFields(t *testing.T) {
	words := fieldSchema{Type: "string", Enum: []string{"a", "b"}, EnumNames: []string{"A"}}
	words.OneOf = append(words.OneOf, struct {
		Const string `json:"const"`
		Title string `json:"title"`
	}{"c", "C"})
	for _, tt := range []struct {
		schema      fieldSchema
		typed, want string // "" is an error
	}{
		{fieldSchema{Type: "boolean"}, "YES", "true"},
		{fieldSchema{Type: "boolean"}, "n", "false"},
		{fieldSchema{Type: "boolean"}, "No", "false"},
		{fieldSchema{Type: "boolean"}, "maybe", ""},
		{fieldSchema{Type: "integer"}, "-7", "-7"},
		{fieldSchema{Type: "integer"}, "1.5", ""},
		{fieldSchema{Type: "number"}, "1.5", "1.5"},
		{fieldSchema{Type: "number"}, "true", ""},
		{fieldSchema{Type: "number"}, "x", ""},
		{fieldSchema{Type: "string"}, "x", `"x"`},
		{fieldSchema{Type: "string"}, "", ""},
		{words, "a", `"a"`},
		{words, "c", `"c"`},
		{words, "A", ""},
	} {
		v, err := (&field{schema: tt.schema}).read(tt.typed)
		text, _ := v.MarshalJSON()
		if got := string(text); (err != nil) != (tt.want == "") || err == nil && got != tt.want {
			t.Errorf("%q as %s: %s, %v", tt.typed, tt.schema.Type, got, err)
		}
	}
	if got := []string{words.title("a"), words.title("b"), words.title("c"), words.title("d")}; cmp.Diff([]string{"A", "", "C", ""}, got) != "" {
		t.Errorf("titles %q", got)
	}
	for text, want := range map[string]int{ // -1 is an error
		"": 0, "{}": 0, `{"decision":{},"feedback":{}}`: 0, `{"decision":{},"name":{}}`: 2, `{"name":{"type":"string"}}`: 1, "[]": -1, `{"name":1}`: -1, `{"name"`: -1,
	} {
		all, err := fields([]byte(text), []string{"name"})
		if (err != nil) != (want < 0) || err == nil && len(all) != want || len(all) > 0 && !all[len(all)-1].required {
			t.Errorf("%s: %+v, %v", text, all, err)
		}
	}
	for text, want := range map[string]string{
		"": " | ", "{}": " | ", "[]": " | ", `{"decision":{"enum":["approved"]}}`: " | ",
		`{"decision":{"enum":["approved_for_session","approved_always"],"enumNames":["Session","go test, always"]}}`:                "for this session | go test, always",
		`{"decision":{"oneOf":[{"const":"approved_for_session","title":"Session"},{"const":"approved_always","title":"go test"}]}}`: "for this session | go test",
		`{"decision":{"enum":["approved_for_session"],"enumNames":["Session, in the sandbox"]}}`:                                    "for this session, in the sandbox | ",
	} {
		var p questionParams
		p.Schema.Properties = []byte(text)
		session, always := offers(&p)
		if got := session + " | " + always; got != want {
			t.Errorf("%s offers %q, want %q", text, got, want)
		}
	}
}

type brokenWriter struct{ writes int }

func (w *brokenWriter) Write([]byte) (int, error) { w.writes++; return 0, io.ErrShortWrite }

// TestOutput fails for good, by a write or because nobody reads.
func TestOutput(t *testing.T) {
	w := &brokenWriter{}
	o := newOutput(&Console{Out: w})
	for range 2 {
		if _, err := o.Write([]byte("x")); !errors.Is(err, io.ErrShortWrite) {
			t.Error(err)
		}
	}
	o.look()
	<-o.failed
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
	}
	gone := false
	o = newOutput(&Console{Out: io.Discard, Unread: func() bool { return gone }})
	for range 3 {
		o.look()
		if (o.err != nil) != gone || gone && !errors.Is(o.err, syscall.EPIPE) {
			t.Errorf("the reader is gone: %t, %v", gone, o.err)
		}
		gone = true
	}
	<-o.failed
	newOutput(&Console{Out: io.Discard}).look()
}

// TestConsoles tells files apart, which stand for a terminal here.
func TestConsoles(t *testing.T) {
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	dir := t.TempDir()
	a, same, b := open(filepath.Join(dir, "a")), open(filepath.Join(dir, "a")), open(filepath.Join(dir, "b"))
	closed := open(filepath.Join(dir, "a"))
	closed.Close()
	for name, tt := range map[string]struct {
		one, two io.Writer
		want     bool
	}{
		"one": {a, a, true}, "the same": {a, same, true}, "two": {a, b, false}, "no file": {a, io.Discard, false}, "none": {io.Discard, io.Discard, false},
		"closed": {a, closed, false}, "closed first": {closed, a, false},
	} {
		if got := Standard(nil, tt.one, tt.two, os.Getenv).Joined; got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if Width(a) != 0 || Width(io.Discard) != 0 {
		t.Error("a file has a width")
	}
	keys := &keyboard{a}
	for _, tt := range []struct {
		c          Console
		asks, json bool
	}{
		{Console{}, false, false}, {Console{Keys: keys}, false, false}, {Console{OutTerminal: true}, false, false},
		{Console{Keys: keys, OutTerminal: true}, true, false}, {Console{Keys: keys, ErrTerminal: true}, true, true},
	} {
		if plain, json := tt.c.Asks(false), tt.c.Asks(true); plain != tt.asks || json != tt.json {
			t.Errorf("%+v asks: %t, with JSON %t", tt.c, plain, json)
		}
	}
	if _, err := keys.Raw(); err == nil {
		t.Error("a file is raw")
	}
}

// TestKeys reads what is typed.
func TestKeys(t *testing.T) {
	for text, want := range map[string]key{"y": 'y', "Y": 'y', "\x1b": keyEscape, "\x1b[A": keyOther, "yy": keyOther, "é": 'é'} {
		if got := keyOf(text); got != want {
			t.Errorf("%q is the key %d", text, got)
		}
	}
	for text, want := range map[string]bool{"": true, "y": false, "\x03": true, "yy\x03": true} {
		if stops(text) != want {
			t.Errorf("%q stops: %t", text, !want)
		}
	}
}

// TestInbox puts and takes messages at the same time, in order.
func TestInbox(t *testing.T) {
	b := newInbox()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	open := &question{ctx: t.Context()}
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 100 {
			b.put(i)
		}
	})
	all.Go(func() {
		for range 10 {
			b.waiting()
		}
	})
	for i := range 100 {
		<-b.news
		if got := b.take(); got != i {
			t.Fatalf("%v, want %d", got, i)
		}
	}
	all.Wait()
	for _, m := range []any{&question{ctx: ended}, 1, open} {
		b.put(m)
	}
	if got := b.waiting(); len(got) != 1 || got[0] != open || len(b.news) != 1 {
		t.Errorf("%d questions wait", len(got))
	}
}

// TestEngineOf names the engine of a server.
func TestEngineOf(t *testing.T) {
	for want, info := range map[string]codexclient.Info{
		"x": {Name: "x"}, "native engine": {Engine: "native"}, "codex engine": {Engine: "codex", Reason: "the command line says so"},
		"codex engine (because)": {Engine: "codex", Reason: "because"}, "a engine (" + strings.Repeat("r", 40) + ")": {Engine: "a", Reason: strings.Repeat("r", 40)},
		"b engine": {Engine: "b", Reason: strings.Repeat("r", 41)},
	} {
		if got := engineOf(info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestShowScript(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{[]string{"bash", "-lc", "go test ./..."}, "go test ./..."},
		{[]string{"/bin/sh", "-c", "\ncd x\n  exit 0\n"}, "cd x\n  │   exit 0"},
		{[]string{"/usr/bin/zsh", "-lc", "ls"}, "ls"},
		{[]string{"/tmp/bash", "-lc", "ls"}, "/tmp/bash -lc ls"},
		{[]string{"/tmp/bin/bash", "-lc", "ls"}, "/tmp/bin/bash -lc ls"},
		{[]string{"./bash", "-lc", "ls"}, "./bash -lc ls"},
		{[]string{"bash", "-lc", "ls", "x"}, "bash -lc ls x"},
		{[]string{"bash", "-x", "ls"}, "bash -x ls"},
		{[]string{"python", "-c", "ls"}, "python -c ls"},
		{[]string{"bash", "-c", " \n"}, `bash -c $' \n'`},
		{[]string{"bash", "-c", "a\x1b[2K"}, `bash -c $'a\x1b[2K'`},
		{[]string{"bash", "-c", "a\rb"}, `bash -c $'a\rb'`},
		{[]string{"bash", "-c"}, "bash -c"},
		{nil, "''"},
	} {
		if got := showScript(tt.argv); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.argv, got, tt.want)
		}
	}
}

func TestWithoutScript(t *testing.T) {
	argv := []string{"sh", "-c", "a\nb`c`"}
	whole := "sh -c $'a\\nb`c`'"
	for line, want := range map[string]string{
		"Allow X to run `` " + whole + " `` in `/w`?":   "Allow X to run `` " + whole + " `` in `/w`?", // not as questions quote
		"Allow X to run ``" + whole + "`` in `/w`?":     "Allow X to run this script in `/w`?",
		"Allow X to run `" + whole + "`` in `/w`?":      "Allow X to run this script` in `/w`?",
		"Allow X to run ``" + whole + "` in `/w`?":      "Allow X to run ``" + whole + "` in `/w`?",
		"Allow X to run " + whole + " in `/w`?":         "Allow X to run " + whole + " in `/w`?",
		"Allow X to run `sh -c $'a\\n … c` in `/w`?":    "Allow X to run `sh -c $'a\\n … c` in `/w`?",
		"Allow X to run `ls` in `" + whole[:4] + "/w`?": "Allow X to run `ls` in `" + whole[:4] + "/w`?",
	} {
		if got := withoutScript(line, argv); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestMarkdown cuts each text into pieces at every place: the result is the same.
func TestMarkdown(t *testing.T) {
	styled := strings.NewReplacer("\x1b[1m", "<b>", "\x1b[2m", "<d>", "\x1b[36m", "<c>", "\x1b[0m", "</>")
	for in, want := range map[string]string{
		"plain":                              "plain",
		"# A title\nb":                       "<b>A title</>\nb",
		"###### A\n####### B\n#C":            "<b>A</>\n####### B\n#C",
		"a **bold word** b":                  "a <b>bold word</> b",
		"use `go test` or ``":                "use <c>go test</> or ``",
		"2 * 3 ** 4 **":                      "2 * 3 ** 4 **",
		"an *odd `one":                       "an *odd `one",
		"**a\nb**":                           "**a\nb**",
		"- **x**: `y`\n- z":                  "- <b>x</>: <c>y</>\n- z",
		"```go\n# not a **title**\n```\n`c`": "<d>```go</>\n# not a **title**\n<d>```</>\n<c>c</>",
		"```":                                "<d>```</>",
		"#":                                  "#",
		"`" + strings.Repeat("x ", 300):      "`" + strings.Repeat("x ", 300),
		"\n\n# T\n\n":                        "\n\n<b>T</>\n\n",
		"**` `**":                            "<b>` `</>",
		"# " + strings.Repeat("a", 400):      "# " + strings.Repeat("a", 400),
	} {
		s := &screen{color: true}
		for at := range len(in) + 1 {
			var m markdown
			got := m.show(s, in[:at], false) + m.show(s, in[at:], false) + m.show(s, "", true)
			if got = styled.Replace(got); got != want {
				t.Errorf("%q, cut at %d: %q, want %q", in, at, got, want)
			}
		}
		if got := (&markdown{}).show(&screen{}, in, true); got != in {
			t.Errorf("without colours: %q", got)
		}
	}
	for _, in := range []string{"#", "# A", "```a", "`a", "**a", "`", "**"} { // that never ends is not held back for ever
		var m markdown
		long := in + strings.Repeat(in[:1]+" a", waits)
		if got := m.show(&screen{color: true}, long, false); len(m.rest) >= waits {
			t.Errorf("%q: %d bytes wait behind %d", in, len(m.rest), len(got))
		}
	}
}
