package trace

import (
	"bytes"
	"testing"

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
