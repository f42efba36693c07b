package codexserver

import (
	"bytes"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		`{"params":{"apiKey":"sk-1"}}`:                         `{"params":{"apiKey":"<redacted>"}}`,
		`{"result":{"authToken":{"a":["x"]},"ok":1}}`:          `{"result":{"authToken":"<redacted>","ok":1}}`,
		`[{"API_KEY":"a"},{"b":{"Authorization":"Bearer x"}}]`: `[{"API_KEY":"<redacted>"},{"b":{"Authorization":"<redacted>"}}]`,
		`{"n":9007199254740993,"s":"apiKey"}`:                  `{"n":9007199254740993,"s":"apiKey"}`,
		`{"data":"Decide at http://127.0.0.1:80/#s3-_cret."}`:  `{"data":"Decide at http://127.0.0.1:80/#<redacted>"}`,
		`["http://localhost:1/a#b","https://x.org/#b"]`:        `["http://localhost:1/a#<redacted>","https://x.org/#b"]`,
		`{"token":null}`:   `{"token":"<redacted>"}`,
		`{"apiKey":"sk-1"`: `"<not JSON>"`,
		`sk-1`:             `"<not JSON>"`,
	} {
		if diff := cmp.Diff(want, string(redact([]byte(in)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"params":{"apiKey":"sk-secret"}}`))
	f.Add([]byte(`{"a":[{"token":["sk-secret"]}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		in = append(append([]byte(`{"apiKey":"sk-secret","x":`), in...), '}')
		if out := redact(in); bytes.Contains(out, []byte("sk-secret")) && !bytes.Contains(in[26:], []byte("sk-secret")) {
			t.Errorf("%s: %s", in, out)
		}
	})
}

func TestRules(t *testing.T) {
	rules := Rules{
		Allow: [][]string{{"go", "test"}, {"git"}},
		Deny:  [][]string{{"git", "push"}, {}},
	}
	for _, tt := range []struct {
		argv string
		want elicit.Decision // "" is no rule
	}{
		{"go test ./...", elicit.Approved},
		{"go vet", ""},
		{"git push", elicit.Denied},
		{"git push --force", elicit.Denied},
		{"git status", elicit.Approved},
		{"gitx", ""},
		{"bash|-lc|git status && go test", elicit.Approved},
		{"bash|-lc|git status && git push", elicit.Denied},
		{"sh|-c|go vet; git push", elicit.Denied},
		{"bash|-lc|go test && rm -rf /", ""},
		{"bash|-lc|go test $(rm -rf /)", ""},
		{"bash|-lc|go test > out", ""},
		{"bash|-lc|go test *", ""},
		{"bash|script", ""},
	} {
		argv := strings.Fields(tt.argv)
		if strings.Contains(tt.argv, "|") {
			argv = strings.Split(tt.argv, "|")
		}
		out, ruled := rules.decideExec(&protocol.ExecApprovalRequest{Command: argv})
		if ruled != (tt.want != "") || out.Decision != tt.want {
			t.Errorf("%q: %v %q, want %q", argv, ruled, out.Decision, tt.want)
		}
		if tt.want == elicit.Denied && !strings.Contains(out.ForModel(), "rule") {
			t.Errorf("%q: the model is told %q", argv, out.ForModel())
		}
	}
}

// TestRulesSeeWhatIsJudged has an engine that puts a shell around a command.
func TestRulesSeeWhatIsJudged(t *testing.T) {
	rules := Rules{Allow: [][]string{{"go", "test"}}, Deny: [][]string{{"git", "push"}}}
	for script, want := range map[string]elicit.Decision{"go test": elicit.Approved, "git push": elicit.Denied, "make": ""} {
		q := protocol.ExecApprovalRequest{Command: []string{"/bin/bash", "-lc", script}}
		if out, _ := rules.decideExec(&q); out.Decision == elicit.Approved {
			t.Errorf("%s: allowed in a shell that has a folder", script)
		}
		q.Judged = []string{"bash", "-lc", script}
		if out, _ := rules.decideExec(&q); out.Decision != want {
			t.Errorf("%s: %q, want %q", script, out.Decision, want)
		}
		q.Once = true
		if out, _ := rules.decideExec(&q); out.Decision == elicit.Approved {
			t.Errorf("%s: allowed, although it may be something else the next time", script)
		}
	}
}

func TestFilePath(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///repo/a%20b":      "/repo/a b",
		"file://localhost/work":   "/work",
		"file://elsewhere/work":   "",
		"https://example.com/":    "",
		"file:relative":           "",
		"":                        "",
		"file:///repo/../etc/%zz": "",
	} {
		got, ok := filePath(uri)
		if got != want && ok || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", uri, got, ok, want)
		}
	}
}
