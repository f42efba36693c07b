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
		{[]string{"status", "more"}, 2, "unexpected arguments"},
		{[]string{"drain"}, 2, "unexpected arguments"},
		{[]string{"drain", "a", "--json"}, 2, "--json: only for status"},
		{[]string{"--json"}, 2, "--json: only for status"},
		{[]string{"user", "list"}, 2, "unexpected arguments"},
		{[]string{"user", "forget"}, 2, "unexpected arguments"},
		{[]string{"--engine", "x"}, 2, "--engine: want one of auto, codex, native"},
		{[]string{"--log-format", "x"}, 2, "--log-format: want one of text, json"},
		{[]string{"--log", "x"}, 2, "--log"},
		{[]string{"--listen", "0.0.0.0:80"}, 2, "--behind-proxy"},
		{[]string{"--unknown"}, 2, "unknown flag"},
		{nil, 1, "http.principals: missing"},
	} {
		var out strings.Builder
		if status := run(t.Context(), tt.args, &out, &out); status != tt.status || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%q: status %d, %s", tt.args, status, out.String())
		}
	}
}

// TestVisible checks that a log line has no character that a terminal would not show.
func TestVisible(t *testing.T) {
	var out strings.Builder
	(&options{logFormat: "json"}).logger(&out).Error("a\u202eb", "c", "d\U000e0001\u009b\n\x1b")
	if got := out.String(); !strings.Contains(got, `"msg":"a\u202eb","c":"d\udb40\udc01\u009b\n\u001b"}`+"\n") {
		t.Errorf("%q", got)
	}
}
