//go:build cluster

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// page is codexserver/gateway/README.md, which a test follows on three machines.
type page struct {
	t *testing.T
	// substitutions returns what the test writes in the place of texts of the page on a machine: pairs.
	substitutions func(machine int) []string
	used          map[string]bool // the substitutions that were used
	shells        map[int]*shell  // by machine
}

// shell is the root's shell on a machine, which lasts for the whole page.
type shell struct {
	in   io.Writer
	out  *bufio.Reader
	kill func() error
}

// newShell starts the shell of a machine by a command.
func (p *page) newShell(cmd *exec.Cmd) *shell {
	p.t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	w.Close()
	p.t.Cleanup(func() {
		in.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // killed
		out.Close()
	})
	return &shell{in, bufio.NewReader(out), func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }}
}

// substitute replaces texts of the page for a machine.
func (p *page) substitute(machine int, text string) string {
	pairs := p.substitutions(machine)
	for i := 0; i < len(pairs); i += 2 {
		p.used[pairs[i]] = p.used[pairs[i]] || strings.Contains(text, pairs[i])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// run runs a block of the page on a machine, and returns what it prints.
func (p *page) run(machine int, block string) string {
	p.t.Helper()
	const end = "the block has ended"
	s := p.shells[machine]
	if _, err := fmt.Fprintf(s.in, "{\n%s\n} </dev/null\necho %s\n", p.substitute(machine, block), strings.Replace(end, " ", "' '", 1)); err != nil {
		p.t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { _ = s.kill() }).Stop() // a wait of the page has no end
	var printed strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		before, ended := strings.CutSuffix(strings.TrimSuffix(line, "\n"), end)
		if ended {
			return printed.String() + before
		}
		printed.WriteString(line)
		if err != nil {
			p.t.Fatalf("machine %d: the shell ended in the block\n%s\n%s", machine, p.substitute(machine, block), printed.String())
		}
	}
}

// follow runs every command of the page in its order. ready is called before each block.
func (p *page) follow(ready func(block string)) {
	p.t.Helper()
	for i, b := range readmeBlocks(p.t) {
		begun := time.Now()
		var machines []int
		switch {
		case b.where == "machine 1":
			machines = []int{1}
		case strings.HasPrefix(b.where, "each machine"):
			machines = []int{1, 2, 3}
		default:
			p.t.Fatalf("the page does not say where: %q", b.where)
		}
		ready(b.script)
		for _, n := range machines {
			output := p.run(n, b.script)
			if testing.Verbose() {
				p.t.Logf("block %d, machine %d, %v:\n%s", i, n, time.Since(begun).Round(time.Millisecond), output)
			}
			if b.prints != "" && !b.printed(output) {
				p.t.Errorf("machine %d:\n%s\nprints\n%s\nand not\n%s", n, b.script, output, b.prints)
			}
		}
	}
	for text := range p.used {
		if !p.used[text] {
			p.t.Errorf("the page no longer has %q", text)
		}
	}
}

// checkout returns the folder of the repository.
func (p *page) checkout() string {
	dir, err := filepath.Abs("../../../..")
	if err != nil {
		p.t.Fatal(err)
	}
	return dir
}

// version returns the version of a program that a file of the checkout names.
func (p *page) version(file, form string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.checkout(), file))
	if err != nil {
		p.t.Fatal(err)
	}
	found := regexp.MustCompile(form).FindSubmatch(text)
	if found == nil {
		p.t.Fatalf("%s does not name the version %q", file, form)
	}
	return string(found[1])
}

// fenced returns the blocks of docs/operate/operating.md in a language, in the order of the page.
func (p *page) fenced(language string) (all []string) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.checkout(), "docs", "operate", "operating.md"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, m := range readmeFence.FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			all = append(all, m[2])
		}
	}
	if len(all) == 0 {
		p.t.Fatalf("docs/operate/operating.md has no block of %s", language)
	}
	return all
}

// readmeBlock is a block of shell of the page, and what the page says that it prints.
type readmeBlock struct {
	where, script, prints string
}

var (
	readmeFence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	readmeWhere = regexp.MustCompile(`^# on ([^\n]+)\n`)
)

// readmeBlocks returns the blocks of the page.
func readmeBlocks(t *testing.T) (all []readmeBlock) {
	t.Helper()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range readmeFence.FindAllStringSubmatch(string(page), -1) {
		switch where := readmeWhere.FindStringSubmatch(m[2]); {
		case m[1] == "sh" && where != nil:
			all = append(all, readmeBlock{where: where[1], script: m[2]})
		case m[1] == "text" && len(all) > 0 && all[len(all)-1].prints == "":
			all[len(all)-1].prints = m[2]
		default:
			t.Fatalf("a block that no test runs: %q\n%s", m[1], m[2])
		}
	}
	return all
}

// prints reports whether an output is what the page shows, where … is anything.
func (b readmeBlock) printed(output string) bool {
	var form strings.Builder
	form.WriteString(`(?s)^\s*`)
	for i, part := range strings.Split(strings.TrimSpace(b.prints), "…") {
		if i > 0 {
			form.WriteString(".*")
		}
		words := strings.Fields(part)
		for j, word := range words {
			if j > 0 || i > 0 && strings.TrimLeft(part, " \n") != part {
				form.WriteString(`\s+`)
			}
			form.WriteString(regexp.QuoteMeta(word))
		}
	}
	form.WriteString(`\s*$`)
	return regexp.MustCompile(form.String()).MatchString(output)
}

// fileModel asks for one command, which makes the file that the prompt names.
func fileModel() providertest.Turn {
	return providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		file, ok := strings.CutPrefix(r.LastUserText(), "make the file ")
		if ok && len(r.ToolOutputs()) == 0 {
			return providertest.Call(providertest.Shell("c", "touch", file))
		}
		return providertest.Say("It is made.")
	}}
}
