package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEndToEndPagePort starts two clients and ask with the same port for their pages. The first one has it, the others
// say once that they have another, doctor warns, and a person decides on each page.
func TestEndToEndPagePort(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	type client struct {
		*process
		f folders
	}
	var all []client
	flags := []string{"--engine", "native", "--approvals", "page", "-c", "approvals.page_port=" + port}
	doctor := func(warned bool) {
		t.Helper()
		f := all[0].f
		cmd := f.command(t.Context(), built(t), append([]string{"doctor"}, flags...)...)
		cmd.Env = append(cmd.Env, "CODEX_BIN=/no/codex")
		out, err := cmd.CombinedOutput()
		must.OK(t, err)
		for _, words := range []string{"approvals.page_port: listen tcp4 127.0.0.1:" + port, "the next page takes a free port"} {
			must.Equal(t, "it warns of "+words, warned, strings.Contains(string(out), words))
		}
	}
	turns := []providertest.Turn{providertest.Call(providertest.Shell("c", "mkdir", "made")), providertest.Say("hello")}
	for i, origin := range []string{"", "", "http://127.0.0.1:9"} {
		f, _ := prepare(t, "untrusted", turns...)
		if origin == "" {
			p := start(t, f, flags...)
			p.hello(`{}`)
			p.call("codex", map[string]any{"prompt": "make a folder"})
			all = append(all, client{p, f})
		} else { // which leads to the first
			args := append([]string{"ask", "make a folder", "-c", "approvals.page_origin=" + origin}, flags...)
			all = append(all, client{launch(t, f, exec.Command(built(t), args...)), f})
		}
		until(t, "there is no page", func() bool { return goldenLink.MatchString(all[i].errors()) })
	}
	doctor(true)
	for i, c := range all {
		link := must.Get(url.Parse(goldenLink.FindString(c.errors())))(t)
		must.Equal(t, "it has the port", i == 0, link.Port() == port)
		must.Equal(t, "it says so", min(i, 1), strings.Count(c.errors(), "approvals.page_port: "))
		v := servertest.Visit(t, link.String())
		v.Answer(v.Events().Question("open").ID, `{"action":"accept"}`)
		if i < 2 {
			c.answer()
			c.stdin.Close()
		}
		must.Equal(t, "exit status", 0, c.wait())
		must.Get(os.Stat(filepath.Join(c.f.cwd, "made")))(t)
	}
	if !strings.Contains(all[2].errors(), ", without approvals.page_origin\n") {
		t.Error("ask does not say that the origin does not lead to its page")
	}
	doctor(false)
}
