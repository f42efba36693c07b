package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/go-json-experiment/json"
)

// TestEndToEndFullDisk runs the tests below in a mount namespace of its own, where the home of
// the program is a file system of a few MiB.
func TestEndToEndFullDisk(t *testing.T) {
	t.Parallel()
	if !testenv.Namespace(t) {
		return
	}
	for name, test := range fullDisks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newSmallDisk(t))
		})
	}
}

// fullDisks are the moments at which the disk of the home becomes full.
var fullDisks = map[string]func(*smallDisk){
	"before a call":           fullBefore,
	"while a command runs":    fullDuringCommand,
	"of the log of approvals": fullLog,
	"of doctor":               fullDoctor,
}

// smallDisk is a program whose home is a small file system.
type smallDisk struct {
	*testing.T
	f     folders
	model *providertest.Server
	p     *process
	ran   string // a file on another disk to which commands append
}

func newSmallDisk(t *testing.T) *smallDisk {
	f := newFolders(t)
	if err := syscall.Mount("small", f.home, "tmpfs", 0, "size=8m,mode=700"); err != nil {
		t.Skip("no file system can be mounted:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(f.home, syscall.MNT_DETACH) })
	d := &smallDisk{T: t, f: f, model: providertest.New(), ran: filepath.Join(f.cwd, "ran")}
	t.Cleanup(d.model.Close)
	writeConfig(t, f.home, fmt.Sprintf(configOf, d.model.BaseURL()))
	return d
}

// serve starts the program.
func (d *smallDisk) serve(args ...string) {
	d.Helper()
	d.p = start(d.T, d.f, append([]string{"--engine", "native"}, args...)...)
	d.p.hello(`{"elicitation":{}}`)
}

// fill leaves no room on the disk, and free makes room again.
func (d *smallDisk) fill() {
	d.Helper()
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := f.Write(block); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				d.Fatal(err)
			}
			block = block[:len(block)/2]
		}
	}
}

func (d *smallDisk) filler() string { return filepath.Join(d.f.home, "filler") }

func (d *smallDisk) free() {
	d.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.Fatal(err)
	}
}

// long is longer than the room that a full disk can have: what is left of the last page of a file,
// and some pages of a snapshot that had begun, failed for want of room, and is removed.
var long = strings.Repeat("x", 100_000)

// command returns a turn of the model that appends a word to the file of what ran. Its line in a file is long.
func (d *smallDisk) command(word string) providertest.Turn { return d.padded(word, long) }

func (d *smallDisk) padded(word, padding string) providertest.Turn {
	return providertest.Call(providertest.Shell(word, "bash", "-c", fmt.Sprintf("echo %s >> %q; : %s", word, d.ran, padding)))
}

// call calls a tool, and returns its answer.
func (d *smallDisk) call(tool string, arguments map[string]any) map[string]any {
	d.Helper()
	d.p.call(tool, arguments)
	return d.p.answer()
}

// fails checks that an answer is an error that says that there is no room.
func (d *smallDisk) fails(answer map[string]any, parts ...string) {
	d.Helper()
	result, _ := result(answer)
	text, _ := json.Marshal(result["content"])
	for _, part := range append(parts, "no space left on device") {
		if result["isError"] != true || !strings.Contains(string(text), part) {
			d.Errorf("the answer is not an error with %q: %v", part, answer)
		}
	}
}

// commands checks which commands ran.
func (d *smallDisk) commands(want ...string) {
	d.Helper()
	data, err := os.ReadFile(d.ran)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.Fatal(err)
	}
	if got := strings.Fields(string(data)); strings.Join(got, " ") != strings.Join(want, " ") {
		d.Errorf("commands %q ran, want %q", got, want)
	}
}

// continues checks that the conversation of an answer continues when there is room, in a new process.
func (d *smallDisk) continues(answer map[string]any) {
	d.Helper()
	_, id := result(answer)
	if id == "" {
		d.Fatalf("the answer names no conversation: %v", answer)
	}
	d.model.Reset(providertest.Say("continued"), providertest.Say("continued"))
	for n, again := range []string{"here", "elsewhere"} {
		if n == 1 {
			d.p.stdin.Close()
			d.p.wait()
			d.serve()
		}
		got, _ := result(d.call("codex-reply", map[string]any{"threadId": id, "prompt": again}))
		if text, _ := json.Marshal(got); got["isError"] == true || !strings.Contains(string(text), "continued") {
			d.Errorf("it does not continue %s: %s", again, text)
		}
	}
	requests := d.model.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "here") || !strings.Contains(last, "elsewhere") {
		d.Errorf("the conversation is not whole: %s", last)
	}
}

var diskWork = map[string]any{"prompt": "work", "approval-policy": "never"}

func fullBefore(d *smallDisk) {
	d.model.Reset(d.command("one"), providertest.Say("done"), providertest.Say("done"))
	d.serve()
	first := d.call("codex", diskWork)
	d.commands("one")
	d.fill()
	asked := len(d.model.Requests())
	d.model.Reset(d.command("two"), d.command("three"))
	d.fails(d.call("codex", diskWork), " cannot be written to, so nothing was started: ")
	_, id := result(first)
	d.fails(d.call("codex-reply", map[string]any{"prompt": "more", "threadId": id}), "nothing was started")
	d.commands("one")
	if n := len(d.model.Requests()); n != asked {
		d.Errorf("the model was asked %d times", n-asked)
	}
	d.free()
	d.continues(first)
}

func fullDuringCommand(d *smallDisk) {
	d.model.Reset(providertest.Call(providertest.Shell("one", "bash", "-c", fmt.Sprintf("echo one >> %q; cat /dev/zero > %q; echo %s", d.ran, d.filler(), long))), d.command("two"), d.command("three"))
	d.serve()
	answer := d.call("codex", diskWork)
	d.fails(answer, "nothing more was run")
	d.commands("one")
	if n := len(d.model.Requests()); n != 1 {
		d.Errorf("the model was asked %d times", n)
	}
	d.free()
	d.continues(answer)
}

func fullLog(d *smallDisk) {
	small := filepath.Join(d.f.user, "log")
	if err := errors.Join(os.Mkdir(small, 0o700), syscall.Mount("small", small, "tmpfs", 0, "size=64k")); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	path := filepath.Join(small, "approvals")
	padding := long[:10_000] // more than a page; an entry of the log may not have 100,000
	d.model.Reset(d.padded("one", padding), d.padded("two", padding), d.padded("three", padding), providertest.Say("done"))
	d.serve("-c", fmt.Sprintf("approvals.log=%q", path))
	d.p.call("codex", map[string]any{"prompt": "work", "approval-policy": "untrusted"})
	accept := func(before func()) {
		ask := d.p.expect(map[string]any{"method": "elicitation/create"})
		before()
		d.p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"action":"accept","content":{}}}`, ask["id"]))
	}
	accept(func() {})
	filler := filepath.Join(small, "filler")
	accept(func() { _ = os.WriteFile(filler, make([]byte, 64<<10), 0o600) })
	accept(func() { _ = os.Remove(filler) })
	answer := d.p.answer()
	d.commands("one", "three")
	if text, _ := json.Marshal(answer); !strings.Contains(string(text), "no space left on device") {
		d.Errorf("the client is not told: %s", text)
	}
	lines, err := os.ReadFile(path)
	if err != nil || bytes.Count(lines, []byte(`"decision":"approved"`)) < 2 {
		d.Errorf("%v, the log has\n%s", err, lines)
	}
}

// fullDoctor has doctor say that no task can run on a full disk, nor on one that may only be read.
func fullDoctor(d *smallDisk) {
	says := func(code int, want string) {
		d.Helper()
		cmd := exec.Command(built(d.T), "doctor", "--engine", "native")
		cmd.Dir, cmd.Env = d.f.cwd, append(os.Environ(), "CODEX_HOME="+d.f.home, "HOME="+d.f.user)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), want) {
			d.Errorf("%v, want %q and %d: %s", err, want, code, out)
		}
	}
	says(0, "tasks can run")
	d.fill()
	says(1, "no task can run: "+d.f.home+": no space left on device: ")
	d.free()
	if err := syscall.Mount("small", d.f.home, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		d.Fatal(err)
	}
	says(1, "no task can run: "+d.f.home+": read-only file system: ")
}
