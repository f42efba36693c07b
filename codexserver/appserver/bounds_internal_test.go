package appserver

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
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

// TestWithdrawn withdraws requests before and after they come.
func TestWithdrawn(t *testing.T) {
	q := &requests{open: map[jsonrpc.ID]context.CancelFunc{}, early: map[jsonrpc.ID]bool{}}
	id := func(n int) jsonrpc.ID { return mcptypes.IntID(int64(n)) }
	ended := map[int]int{}
	add := func(n int) { q.add(id(n), func() { ended[n]++ }) }
	add(1)
	q.withdraw(id(1))
	q.withdraw(id(2))
	add(2)
	add(3)
	if ended[1] != 1 || ended[2] != 1 || ended[3] != 0 || len(q.early) != 0 {
		t.Errorf("ended %v, and %d early", ended, len(q.early))
	}
	for n := range 1000 {
		q.withdraw(id(100 + n))
	}
	if len(q.early) != 1000 {
		t.Errorf("%d are remembered", len(q.early))
	}
	if q.withdraw(id(99)); len(q.early) != 1 {
		t.Errorf("%d are remembered after one more", len(q.early))
	}
}

// TestUnknownMethods reports each once, at most a hundred of them, and little of a long one.
func TestUnknownMethods(t *testing.T) {
	var logged bytes.Buffer
	c := &child{log: slog.New(slog.NewTextHandler(&logged, nil)), unknown: map[string]bool{}}
	for i := range 102 {
		for range 2 {
			c.warnUnknown("method", fmt.Sprintf("%0100d", i)+strings.Repeat("x", i))
		}
	}
	if n := strings.Count(logged.String(), "\n"); n != 100 || strings.Contains(logged.String(), "xx") {
		t.Errorf("%d lines: %.300s", n, logged.String())
	}
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
