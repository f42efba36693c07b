package appserver

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTail writes more than is kept, and asks for the reason of the end.
func TestTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := &tail{log: slog.New(slog.DiscardHandler)}
		write := func(text string) {
			if n, err := words.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("wrote %d bytes, %v", n, err)
			}
		}
		var writing sync.WaitGroup
		for range 2 {
			writing.Go(func() {
				for range 100 {
					write("line\n")
				}
			})
		}
		writing.Wait()
		for i := range 51 {
			write(fmt.Sprintf("\x1b[31m%d\x1b[0m\n \n", i))
		}
		if n := len(words.lines); n != 50 || words.lines[0].text != "1" || words.lines[49].text != "50" {
			t.Errorf("%d lines: %v", n, words.lines)
		}
		for range 3 {
			write(strings.Repeat("x", 3000))
		}
		if n := len(words.part); n != 4096 {
			t.Errorf("a line without end: %d bytes", n)
		}
		write("\nError: sk-1234567890 ")
		write("is wrong")
		const want = "Error: [redacted] is wrong"
		for after, want := range map[time.Duration]string{5 * time.Second: want, 5*time.Second + 1: ""} {
			if got := words.last(time.Now().Add(after)); got != want {
				t.Errorf("%v later: %q, want %q", after, got, want)
			}
		}
	})
}

// TestDeaths has an app-server that dies again and again.
func TestDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{}
		end := ending{gone: make(chan struct{}), err: errClosed, stderr: &tail{}}
		close(end.gone)
		last := &launch{child: &child{end: end}}
		for n := range 4 {
			if err := e.exhausted(last); err != nil {
				t.Errorf("after %d deaths: %v", n, err)
			}
			e.deaths = append(e.deaths, time.Now())
		}
		if err := e.exhausted(last); err == nil {
			t.Error("a fifth run")
		}
		time.Sleep(time.Minute)
		if err := e.exhausted(last); err == nil {
			t.Error("a fifth run within a minute")
		}
		time.Sleep(time.Nanosecond)
		if err := e.exhausted(last); err != nil || len(e.deaths) != 0 {
			t.Errorf("a minute later: %v", err)
		}
	})
}

// TestThreads checks which threads belong to a conversation, and that they are forgotten with it.
func TestThreads(t *testing.T) {
	l := &child{loaded: map[string]*thread{}, agents: map[string]subAgent{}}
	one, two := l.load("one"), l.load("two")
	if l.load("one") != one || one == two {
		t.Error("a conversation has two threads")
	}
	l.adopt(one, "a", "/root/a")
	l.adopt(one, "b", "")
	l.adopt(two, "a", "/root/other") // known
	l.adopt(two, "one", "/root/one")
	l.adopt(two, "", "/root/none")
	check := func(when string, want map[string]*thread) {
		t.Helper()
		for _, id := range []string{"one", "two", "a", "b", "", "other"} {
			if got, _ := l.root(id); got != want[id] {
				t.Errorf("%s, %q belongs to %v", when, id, got)
			}
		}
	}
	check("at first", map[string]*thread{"one": one, "two": two, "a": one, "b": one})
	for id, want := range map[string]string{"a": "/root/a", "b": "b", "one": ""} {
		if _, path := l.root(id); path != want {
			t.Errorf("%q is at %q, want %q", id, path, want)
		}
	}
	a := l.load("a") // now a conversation
	check("loaded", map[string]*thread{"one": one, "two": two, "a": a, "b": one})
	l.forget("one")
	l.forget("one")
	check("forgotten", map[string]*thread{"two": two, "a": a})
	if len(l.loaded) != 2 || len(l.agents) != 0 {
		t.Errorf("%d threads and %d agents are kept", len(l.loaded), len(l.agents))
	}
}
