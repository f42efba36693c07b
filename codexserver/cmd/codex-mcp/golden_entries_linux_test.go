package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The entries of [goldenEntries].
func init() {
	goldenEntries["http"] = startConnected
	goldenEntries["shared"] = func(t *testing.T, f folders, args ...string) *process {
		newSharing(t, f)
		return launch(t, f, exec.Command(built(t), append([]string{"--shared"}, args...)...))
	}
}

// startConnected is a launcher that starts codex-mcp http, and a proxy in front of it for its client.
func startConnected(t *testing.T, f folders, args ...string) *process {
	t.Helper()
	unlocked := `http.unlocked_arguments=["approval-policy","config","profile","sandbox"]`
	s := start(t, f, append(append([]string{"http", "--listen", "127.0.0.1:0"}, args...), "-c", unlocked)...)
	url := ""
	until(t, "it does not serve", func() bool {
		_, rest, _ := strings.Cut(s.errors(), "serving MCP at ")
		before, _, served := strings.Cut(rest, ";")
		url = before
		return served
	})
	token, err := loadToken(f.home)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return launch(t, f, exec.Command("env", proxyTo+"="+url, tokenOf+"="+token, self))
}
