package trace

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestRedact(t *testing.T) {
	p, err := page.Listen(&page.Options{Origin: "https://a.example"})
	must.OK(t, err)
	defer p.Close()
	_, secret, _ := strings.Cut(p.Link(), "#")
	for in, want := range map[string]string{
		`{"params":{"apiKey":"sk-1"}}`:                         `{"params":{"apiKey":"<redacted>"}}`,
		`{"result":{"authToken":{"a":["x"]},"ok":1}}`:          `{"result":{"authToken":"<redacted>","ok":1}}`,
		`[{"API_KEY":"a"},{"b":{"Authorization":"Bearer x"}}]`: `[{"API_KEY":"<redacted>"},{"b":{"Authorization":"<redacted>"}}]`,
		`{"n":9007199254740993,"s":"apiKey"}`:                  `{"n":9007199254740993,"s":"apiKey"}`,
		`{"data":"Decide at http://127.0.0.1:80/#s3-_cret."}`:  `{"data":"Decide at http://127.0.0.1:80/#<redacted>"}`,
		`["http://localhost:1/a#b","https://x.org/#b"]`:        `["http://localhost:1/a#<redacted>","https://x.org/#b"]`,
		`{"url":"https://a.example/#` + secret + `"}`:          `{"url":"https://a.example/#<redacted>"}`,
		`["Decide at https:\/\/a.example:8/#` + secret + `."]`: `["Decide at https://a.example:8/#<redacted>."]`,
		`{"token":null}`:           `{"token":"<redacted>"}`,
		"{\"a\":1,\"a\":\"\xff\"}": "{\"a\":1,\"a\":\"\ufffd\"}", // what the peer will refuse
		`{"apiKey":"sk-1"`:         `"<not JSON>"`,
		`sk-1`:                     `"<not JSON>"`,
	} {
		must.Equal(t, in, want, string(redact([]byte(in))))
	}
}

// TestSecrets pins the names of members with secrets, those of messages and those that servers use.
func TestSecrets(t *testing.T) {
	for name := range strings.FieldsSeq("apiKey api_key OPENAI_API_KEY authToken auth_token Authorization access_token refresh_token id_token token authUrl password secret") {
		must.Equal(t, name, `{"`+name+`":"<redacted>"}`, string(redact([]byte(`{"`+name+`":"x"}`))))
	}
}

// TestLines writes from two sides at once, as a peer does: each message is a line of its own.
func TestLines(t *testing.T) {
	var written bytes.Buffer
	hooks := Hooks(&written)
	var sides sync.WaitGroup
	for _, side := range []func([]byte){hooks.Received, hooks.Sent} {
		sides.Go(func() {
			for range 50 {
				side([]byte(`{"id":1}`))
			}
		})
	}
	sides.Wait()
	must.Equal(t, "whole lines", 100, strings.Count(written.String(), " {\"id\":1}\n"))
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
