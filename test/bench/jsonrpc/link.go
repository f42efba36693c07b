package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
)

// stream is one end of a link.
type stream struct {
	io.Reader
	io.Writer
	closers []io.Closer
}

func (s *stream) Close() error {
	for _, c := range s.closers {
		_ = c.Close()
	}
	return nil
}

func stdio() *stream { return &stream{os.Stdin, os.Stdout, []io.Closer{os.Stdin, os.Stdout}} }

// conn is a client that is connected to its server.
type conn struct {
	*peer
	caller
	close func()
}

func dialAll(link, only string) []*conn {
	var out []*conn
	for _, p := range peers {
		if only == "" || slices.Contains(strings.Split(only, ","), p.name) {
			out = append(out, dial(link, p))
		}
	}
	return out
}

func dial(link string, p *peer) *conn {
	switch link {
	case "child":
		return dialChild(p, anyCore, anyCore)
	case "near":
		return dialChild(p, 0, 0)
	case "far":
		return dialChild(p, 0, 1)
	}
	a, b := mem()
	if link == "pipe" {
		a, b = pipes()
	}
	go p.serve(b)
	return &conn{p, p.dial(a), func() { _, _ = a.Close(), b.Close() }}
}

func mem() (a, b *stream) {
	x, y := net.Pipe()
	return &stream{x, x, []io.Closer{x}}, &stream{y, y, []io.Closer{y}}
}

func pipes() (a, b *stream) {
	ar, bw := must2(os.Pipe())
	br, aw := must2(os.Pipe())
	return &stream{ar, aw, []io.Closer{aw, ar}}, &stream{br, bw, []io.Closer{bw, br}}
}

// anyCore lets the kernel choose a core.
const anyCore = -1

// dialChild starts the server in a child process. Each of the two is pinned to a core.
func dialChild(p *peer, core, childCore int) *conn {
	cmd := exec.Command(must(os.Executable()), "-serve", p.name)
	cr, w := must2(os.Pipe())
	r, cw := must2(os.Pipe())
	// Set, because the runtime otherwise follows the number of cores that pin leaves.
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", runtime.GOMAXPROCS(0)))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = cr, cw, os.Stderr
	check(cmd.Start())
	pin(os.Getpid(), core)
	pin(cmd.Process.Pid, childCore)
	_, _ = cr.Close(), cw.Close()
	s := &stream{r, w, []io.Closer{w, r}}
	return &conn{p, p.dial(s), func() {
		_ = s.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}}
}

func profile(path string) (stop func()) {
	if path == "" {
		return func() {}
	}
	f := must(os.Create(path))
	check(pprof.StartCPUProfile(f))
	return func() {
		pprof.StopCPUProfile()
		check(f.Close())
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func must2[A, B any](a A, b B, err error) (A, B) {
	check(err)
	return a, b
}
