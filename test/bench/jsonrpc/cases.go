package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// rpcCase is a case of jsonrpc/testdata/*-cases.json, which explain the fields.
type rpcCase struct {
	N         string            `json:"n"`
	Send      []json.RawMessage `json:"send"`
	Expect    []wanted          `json:"expect"`
	Alt       [][]wanted        `json:"alt"`
	Alive     bool              `json:"alive"`
	TimeoutMS int               `json:"timeout_ms"`
}

type wanted struct {
	ID    string  `json:"id"`
	Any   bool    `json:"any"`
	Text  *string `json:"text"`
	Code  []int   `json:"code"`
	Ticks int     `json:"ticks"`
	UpTo  int     `json:"upto"`
}

// got is a message of the peer under test.
type got struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Progress int `json:"progress"`
	} `json:"params"`
	Result *callResult `json:"result"`
	Error  *struct {
		Code int `json:"code"`
	} `json:"error"`
}

// runCases runs all cases against the server of each peer, and prints how many are right, and the names of the others.
func runCases(w io.Writer, folder, only string) {
	var cases []rpcCase
	for _, name := range []string{"rpc-cases.json", "more-cases.json"} {
		var file struct{ Cases []rpcCase }
		check(json.Unmarshal(must(os.ReadFile(filepath.Join(folder, name))), &file))
		cases = append(cases, file.Cases...)
	}
	for _, p := range peers {
		if p.tools == nil || only != "" && !slices.Contains(strings.Split(only, ","), p.name) {
			continue
		}
		var running sync.WaitGroup
		room, wrong := make(chan struct{}, 16), make([]string, len(cases))
		for i := range cases {
			running.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				if !cases[i].right(p) {
					wrong[i] = cases[i].N
				}
			})
		}
		running.Wait()
		wrong = slices.DeleteFunc(wrong, func(name string) bool { return name == "" })
		must(fmt.Fprintf(w, "%s: %d of %d right; wrong: %s\n", p.name, len(cases)-len(wrong), len(cases),
			strings.Join(wrong, " ")))
	}
}

// patience is how long a case may take that does not say it, and settle how long nothing more may come after the
// answers.
const (
	patience = 5 * time.Second
	longest  = 15 * time.Second
	settle   = 200 * time.Millisecond
	notRead  = 6 * time.Second // instead of the minute of a test whose clock is not real
)

// right reports whether the server of a peer, a child process, does what the case wants.
func (c *rpcCase) right(p *peer) bool {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, must(os.Executable()), "-tools", p.name)
	in, out := must(cmd.StdinPipe()), must(cmd.StdoutPipe())
	check(cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	d := &driver{in: in, asked: make(chan json.RawMessage, 64), changed: make(chan struct{}, 1)}
	go d.read(out)
	d.write(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"cases","version":"1"}}}` + "\n")
	if !d.await(patience, []wanted{{ID: `"init"`}}) {
		return false
	}
	d.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	timeout := min(longest, max(patience, time.Duration(c.TimeoutMS)*time.Millisecond))
	sent := make(chan struct{})
	go func() { // a peer may stop reading
		defer close(sent)
		for _, s := range c.Send {
			d.do(ctx, s)
		}
	}()
	select {
	case <-sent:
	case <-time.After(timeout):
		return false
	}
	if !d.await(timeout, append([][]wanted{c.Expect}, c.Alt...)...) {
		return false
	}
	if c.Alive {
		d.write(`{"jsonrpc":"2.0","id":"probe","method":"ping"}` + "\n")
		return d.await(patience, []wanted{{ID: `"probe"`}})
	}
	return true
}

// driver feeds a peer and collects what it writes.
type driver struct {
	in      io.WriteCloser
	asked   chan json.RawMessage // ids of the peer's requests
	last    json.RawMessage
	changed chan struct{}
	gate    sync.Mutex // held while nothing is read

	mu   sync.Mutex
	out  []got
	junk bool // it wrote what is not a message
}

func (d *driver) write(text string) { _, _ = io.WriteString(d.in, text) } // a peer that has ended answers nothing

// await reports whether the answers come to be one of the sets, and stay that. It takes them.
func (d *driver) await(timeout time.Duration, sets ...[]wanted) bool {
	deadline := time.After(timeout)
	matches := func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return !d.junk && slices.ContainsFunc(sets, func(set []wanted) bool { return matchAll(set, d.out) })
	}
	for {
		if matches() {
			<-time.After(settle)
			if matches() {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.out = nil
				return true
			}
		}
		select {
		case <-d.changed:
			<-time.After(10 * time.Millisecond) // with others
		case <-deadline:
			return matches()
		}
	}
}

func (d *driver) read(r io.Reader) {
	lines := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		d.gate.Lock()
		//lint:ignore SA2001 it waits while nothing is to be read
		d.gate.Unlock()
		var g got
		wrong := json.Unmarshal(line, &g) != nil
		if !wrong && g.Method != "" && g.ID != nil {
			d.asked <- g.ID
			continue
		}
		d.mu.Lock()
		d.out, d.junk = append(d.out, g), d.junk || wrong
		d.mu.Unlock()
		select {
		case d.changed <- struct{}{}:
		default:
		}
	}
}

// do carries out one element of send.
func (d *driver) do(ctx context.Context, raw json.RawMessage) {
	var line string
	if json.Unmarshal(raw, &line) == nil {
		d.write(line + "\n")
		return
	}
	var s struct {
		Raw     *string `json:"raw"`
		Bytes   []byte  `json:"base64"`
		Rep     *string `json:"rep"`
		Times   int     `json:"times"`
		Sleep   int     `json:"sleep"`
		Answer  *string `json:"answer"`
		IDStyle string  `json:"idstyle"`
		NoRead  int     `json:"noread"`
		Line    string  `json:"line"`
		Close   bool    `json:"close"`
	}
	check(json.Unmarshal(raw, &s))
	switch {
	case s.Raw != nil:
		d.write(*s.Raw)
	case s.Bytes != nil:
		d.write(string(s.Bytes))
	case s.Rep != nil:
		d.write(strings.Repeat(*s.Rep, s.Times))
	case s.Line != "":
		for i := range s.Times {
			d.write(strings.ReplaceAll(s.Line, "%d", fmt.Sprint(i+1)) + "\n")
		}
	case s.Sleep > 0:
		<-time.After(time.Duration(s.Sleep) * time.Millisecond)
	case s.NoRead > 0:
		d.gate.Lock()
		time.AfterFunc(min(notRead, time.Duration(s.NoRead)*time.Millisecond), d.gate.Unlock)
	case s.Answer != nil:
		if d.last == nil {
			select {
			case d.last = <-d.asked:
			case <-ctx.Done():
				return
			}
		}
		id := string(d.last)
		if s.IDStyle == "otherkind" {
			id = `"` + id + `"`
		}
		d.write(`{"jsonrpc":"2.0","id":` + id + `,` + *s.Answer + "}\n")
	case s.Close:
		_ = d.in.Close()
	}
}

func (w *wanted) matches(g *got) bool {
	var want, id any
	if g.Method != "" || g.ID == nil {
		return false
	}
	// a number beyond all floats
	if errors.Join(json.Unmarshal([]byte(w.ID), &want), json.Unmarshal(g.ID, &id)) != nil {
		want, id = w.ID, string(g.ID)
	}
	if want != id {
		return false
	}
	switch {
	case w.Any:
		return g.Result != nil || g.Error != nil
	case w.Code != nil:
		return g.Error != nil && slices.Contains(w.Code, g.Error.Code)
	case g.Result == nil:
		return false
	case w.Text != nil:
		return len(g.Result.Content) == 1 && g.Result.Content[0].Text == *w.Text
	}
	return true
}

// matchAll matches answers in any order, and ticks in their order.
func matchAll(want []wanted, out []got) bool {
	ticks, left := 0, []got(nil)
	for _, g := range out {
		if g.Method == "notifications/progress" {
			if ticks++; g.Params.Progress != ticks {
				return false
			}
			continue
		}
		left = append(left, g)
	}
	for _, w := range want {
		switch {
		case w.Ticks > 0:
			if ticks != w.Ticks {
				return false
			}
			ticks = 0
			continue
		case w.UpTo > 0:
			return len(left) <= w.UpTo
		}
		i := slices.IndexFunc(left, func(g got) bool { return w.matches(&g) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return len(left) == 0 && ticks == 0
}
