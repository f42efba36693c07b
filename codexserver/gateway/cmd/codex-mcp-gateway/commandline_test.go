package main

import (
	"strings"
	"testing"
)

// TestCommandLine checks command lines that start no server.
func TestCommandLine(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	for _, tt := range []struct {
		args   []string
		status int
		want   string // part of the output
	}{
		{[]string{"--help"}, 0, "--behind-proxy ADDRESS"},
		{[]string{"--version"}, 0, program + " dev ("},
		{[]string{"http"}, 2, `unexpected arguments ["http"]; want status, drain NODE, or user forget NAME`},
		{[]string{"drain"}, 2, "unexpected arguments"},
		{[]string{"drain", "a", "--json"}, 2, "--json: only for status"},
		{[]string{"user", "list"}, 2, "unexpected arguments"},
		{[]string{"--engine", "x"}, 2, "--engine: want one of auto, codex, native"},
		{[]string{"--log-format", "x"}, 2, "--log-format: want one of text, json"},
		{[]string{"--log", "x"}, 2, "--log"},
		{[]string{"--listen", "0.0.0.0:80"}, 2, "--behind-proxy"},
		{[]string{"--unknown"}, 2, "unknown flag"},
		{nil, 1, "http.principals: missing"},
		{[]string{"status", "--json"}, 1, "nats.url: missing"},
		{[]string{"user", "forget", "eve"}, 0, "there was no state in NATS\nthere was no home "},
		{[]string{"--new-token", "../a"}, 2, "--new-token: "},
	} {
		var out strings.Builder
		if status := run(t.Context(), tt.args, &out, &out); status != tt.status || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%q: status %d, %s", tt.args, status, out.String())
		}
	}
}
