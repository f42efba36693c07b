package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// linkRows returns the attacks of a command on the link of the page.
func linkRows() (rows []attack) {
	inSandbox := func(v *victim, line string) { v.says(v.script("c1", line)) }
	for _, a := range []struct {
		name   string
		config string
		run    func(v *victim, line string) // begins what the next turn runs
	}{
		{"in the sandbox", "", inSandbox},
		{"in the sandbox, with the network", "network_access = true\n", inSandbox},
		{"that a person approved", "", func(v *victim, line string) { v.says(v.outside("c1", "", strings.Fields(line)...)) }},
		{"that a person approved, as an orphan", "", func(v *victim, line string) {
			v.write(filepath.Join(v.cwd, "orphan.sh"), fmt.Sprintf("(setsid env %s orphan &)\nwhile [ ! -e %s ]; do sleep 0.01; done\n", line, v.report()))
			v.says(v.outside("c1", "", "sh", "orphan.sh"))
		}},
	} {
		try := func(v *victim) string {
			self, err := os.Executable()
			if err != nil {
				v.t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Dir(v.report()), 0o755); err != nil {
				v.t.Fatal(err)
			}
			// Codex's sandbox does not have the whole of /dev, where this program may be.
			thief := filepath.Join(filepath.Dir(v.user), "thief")
			program, err := os.ReadFile(self)
			if err != nil {
				v.t.Fatal(err)
			}
			syscall.ForkLock.RLock() // a child that another test starts meanwhile would have it open for writing
			err = os.WriteFile(thief, program, 0o700)
			syscall.ForkLock.RUnlock()
			if err != nil {
				v.t.Fatal(err)
			}
			v.serve(onRequest+fmt.Sprintf("\n[sandbox_workspace_write]\nwritable_roots = [%q]\n%s", filepath.Dir(v.report()), a.config), "")
			v.answer = func(map[string]any) string { return `{"action":"accept"}` }
			a.run(v, fmt.Sprintf("env %s=%s %s %s", thiefOf, v.report(), thief, filepath.Join(v.home, "codex-mcp", "run", "pages")))
			result := v.call("codex", map[string]any{"prompt": "go"})
			said, err := os.ReadFile(v.report())
			if err != nil {
				v.t.Fatalf("%v; the call returned %v", err, result)
			}
			if text := string(said); strings.Contains(text, "/#") || !strings.Contains(text, "refused") || !strings.HasPrefix(text, "1 sockets") {
				return "it was told " + text
			}
			return ""
		}
		const noPage = "without `--approvals page` there is no page"
		rows = append(rows, attack{
			name: "a command asks for a link to the page: one " + a.name, try: try,
			never: map[string]string{"stdio": noPage, "http": noPage, "task": noPage},
		})
	}
	return rows
}

// report is the file of a thief.
func (v *victim) report() string { return filepath.Join(filepath.Dir(v.user), "report", "said") }
