package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// trick is something that package jsonrpc does for its speed alone. The edits undo it.
type trick struct {
	name, file string
	edits      [][2]string // what occurs once in the file, and what takes its place
	cells      []cell      // where it earns most
}

// cell is a link, a work and a peer.
type cell struct{ link, work, peer string }

var tricks = []trick{
	{"one Write for all that waits", "egress.go", [][2]string{{
		"\t\terr = e.t.Write(e.ctx, messages)\n",
		"\t\tfor i := 0; i < len(messages) && err == nil; i++ {\n\t\t\terr = e.t.Write(e.ctx, " +
			"messages[i:i+1])\n\t\t}\n",
	}}, []cell{{"mem", "par", "jsonrpc"}, {"mem", "flood", "jsonrpc"}, {"pipe", "par", "jsonrpc"}}},
	{"a sender writes itself", "egress.go", [][2]string{
		{"(w == bySender || w >= ifPrompt && e.p != nil)", "w == gathered && e.p != nil"},
	}, []cell{{"pipe", "seq", "jsonrpc"}, {"near", "seq", "jsonrpc"}}},
	{"a sender writes while the writer gets no time", "egress.go", [][2]string{
		{"w == byWriter && e.overdue(n)", "false && e.overdue(n)"},
	}, []cell{{"far", "flood", "jsonrpc"}}},
	{"the reader writes its answer", "answer.go", [][2]string{
		{"\tcase from == onReadLoop:\n", "\tcase from == onReadLoop:\n\t\tw = byWriter\n"},
	}, []cell{{"near", "seq", "jsonrpc inline"}}},
	{"the answers of the reader leave with one Write while more has arrived", "answer.go", [][2]string{
		{"p.more != nil && p.more()", "false"},
	}, []cell{{"pipe", "par", "jsonrpc inline"}, {"near", "par", "jsonrpc inline"}, {"far", "par", "jsonrpc inline"}}},
	{"a descriptor is asked for room", "poll_linux.go", [][2]string{
		{"f, ok := w.(syscall.Conn)\n", "f, ok := w.(syscall.Conn)\n\tok = ok && w == nil\n"},
	}, []cell{{"near", "seq", "jsonrpc inline"}, {"pipe", "par", "jsonrpc"}}},
	{"a thread waits for standard input", "poll_linux.go", [][2]string{
		{"\tr, w, err := os.Pipe()\n", "\tif p, err := os.OpenFile(\"/proc/self/fd/\"+strconv.Itoa(int(f.Fd())), " +
			"syscall.O_NONBLOCK, 0); err == nil {\n" +
			"\t\treturn p, true\n\t}\n\tr, w, err := os.Pipe()\n"},
	}, []cell{{"near", "seq", "jsonrpc"}, {"near", "seq", "jsonrpc inline"}}},
	{"the reader handles a request after which nothing has arrived", "dispatch.go", [][2]string{
		{"r.batch == nil && !p.more():", "r.batch == nil && !p.more() && false:"},
	}, []cell{{"near", "seq", "jsonrpc"}, {"pipe", "seq", "jsonrpc"}, {"mem", "seq", "jsonrpc"}}},
	{"a pool of chunks", "egress.go", [][2]string{
		{"chunks.Get().(*chunk)", "chunks.New().(*chunk)"},
	}, []cell{{"mem", "seq", "jsonrpc"}, {"pipe", "par", "jsonrpc"}}},
	{"a pool of buffers", "encode.go", [][2]string{
		{"return buffers.Get().(*bytes.Buffer)", "return new(bytes.Buffer)"},
	}, []cell{{"mem", "seq", "jsonrpc"}, {"pipe", "flood", "jsonrpc"}}},
	{"contexts are made on demand", "dispatch.go", [][2]string{
		{"\treturn &Request{ID", "\tr := &Request{ID"},
		{"size: len(line) + overhead}\n", "size: len(line) + overhead}\n\tmade := new(realContext)\n" +
			"\tmade.Context, made.cancel = context.WithCancelCause(p.ctx.base)\n\tr.ctx.Store(made)\n\treturn r\n"},
	}, []cell{{"mem", "flood", "jsonrpc"}, {"pipe", "flood", "jsonrpc"}}},
	{"a scanner of its own", "message.go", [][2]string{
		{"end, f := checkValue(line, d.depth, &e)", "end, f := e.decode(line)"},
		{"\nimport (\n", "\nimport (\n\tjsonx \"github.com/go-json-experiment/json\"\n"},
		{"// put notes a member;", `func (e *envelope) decode(line []byte) (int, scanFault) {
	var v struct {
		Version jsontext.Value ` + "`json:\"jsonrpc\"`" + `
		ID      jsontext.Value ` + "`json:\"id\"`" + `
		Method  jsontext.Value ` + "`json:\"method\"`" + `
		Params  jsontext.Value ` + "`json:\"params\"`" + `
		Result  jsontext.Value ` + "`json:\"result\"`" + `
		Error   jsontext.Value ` + "`json:\"error\"`" + `
	}
	if jsonx.Unmarshal(line, &v) != nil {
		return 0, scanSyntax
	}
	for i, value := range []jsontext.Value{v.Version, v.ID, v.Method, v.Params, v.Result, v.Error} {
		if value != nil {
			e.put(1<<i, value)
		}
	}
	return len(line), scanOK
}

// put notes a member;`},
	}, []cell{{"mem", "seq", "jsonrpc"}, {"mem", "flood", "jsonrpc"}, {"pipe", "par", "jsonrpc"}}},
}

// measured is the package whose tricks are undone, from the folder of this module.
const measured = "../../jsonrpc"

// undo returns the trick's file in a folder without the trick.
func (t *trick) undo(folder string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, t.file))
	if err != nil {
		return "", err
	}
	source := string(text)
	for _, edit := range t.edits {
		if n := strings.Count(source, edit[0]); n != 1 {
			return "", fmt.Errorf("%s: %s has %q %d times, want once", t.name, t.file, edit[0], n)
		}
		source = strings.Replace(source, edit[0], edit[1], 1)
	}
	return source, nil
}

// ablate builds this program once as it is and once without each trick, and prints how long the cells of the trick take
// with both, sample by sample in turn.
func ablate(w io.Writer, samples int, span time.Duration) {
	dir := must(os.MkdirTemp("", "tricks"))
	defer func() { check(os.RemoveAll(dir)) }()
	whole := build(dir, nil)
	fmt.Fprint(w, "| without | link | work | peer | µs with it | µs without | without ÷ with "+
		"|\n|---|---|---|---|---|---|---|\n")
	for i := range tricks {
		t := &tricks[i]
		without := build(dir, t)
		for _, c := range t.cells {
			var before, after []sample
			for range samples {
				before = append(before, c.measure(whole, span))
				after = append(after, c.measure(without, span))
			}
			with, lost := quantile(before, 0.5, ns), quantile(after, 0.5, ns)
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %.2f |\n", t.name, c.link, c.work, c.peer, micros(with),
				micros(lost), lost/with)
		}
	}
}

// build builds this program without a trick, nil for none.
func build(dir string, t *trick) (program string) {
	args := []string{"build", "-o", filepath.Join(dir, "whole")}
	if t != nil {
		source := filepath.Join(dir, t.file)
		check(os.WriteFile(source, []byte(must(t.undo(measured))), 0o600))
		overlay := map[string]map[string]string{"Replace": {must(filepath.Abs(filepath.Join(measured,
			t.file))): source}}
		check(os.WriteFile(filepath.Join(dir, "overlay.json"), must(json.Marshal(overlay)), 0o600))
		args = []string{"build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(dir, "without")}
	}
	cmd := exec.Command("go", append(args, "./jsonrpc")...)
	cmd.Stderr = os.Stderr
	check(cmd.Run())
	return args[len(args)-1]
}

// measure runs a program for one sample of the cell.
func (c cell) measure(program string, span time.Duration) sample {
	cmd := exec.Command(program, "-link", c.link, "-work", c.work, "-peer", c.peer, "-samples", "1", "-span",
		span.String())
	rows := strings.Split(strings.TrimSpace(string(must(cmd.Output()))), "\n")
	for _, column := range strings.Split(rows[len(rows)-1], "|")[3:] { // those of the other peers are empty
		if us, err := strconv.ParseFloat(strings.TrimSpace(column), 64); err == nil {
			return sample{ns: us * 1000}
		}
	}
	panic("no time in " + rows[len(rows)-1])
}
