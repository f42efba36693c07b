// Command bench measures jsonrpc and six other Go packages on the same work, in one run,
// sample by sample in turn. It compares them with a bare pipe and with a naive loop over
// encoding/json.
//
//	go run ./jsonrpc > results.md            # all of it, some minutes
//	go run ./jsonrpc -work seq -link pipe    # one cell
//	go run ./jsonrpc -count                  # instructions and system calls, beside go.lsp.dev/jsonrpc2, some minutes
//	go run ./jsonrpc -idle 5000              # memory of idle peers, beside the same
//	go run ./jsonrpc -unsafe                 # what each does where one may hang or end, some minutes
//	go run ./jsonrpc -tricks                 # jsonrpc without each of its tricks, some minutes
//	go run ./jsonrpc -cases ../../jsonrpc/testdata
//
// They run in the folder of the module. -count needs valgrind and perf on Linux, and says so without them; what it prints
// depends little on what else the machine does. The last one measures nothing: it sends the raw and nasty cases that the tests of
// jsonrpc have to a server of each peer, a child process for each case, and prints how many are answered as they should
// be. A minute without reading is six seconds here.
//
// Links: mem is net.Pipe in one process, pipe is two kernel pipes in one process, child
// is the standard input and output of a child process. On Linux near is child with both
// processes on one core, and far with a core for each; without that, chance decides. Work:
// seq is one call after another with about 265 bytes of request, par is 64 callers at once,
// flood is 5,000 notifications until the server has handled all in order, again and again, big is a string of
// 1 MiB there and back, twoway is a call whose handler calls back.
//
// The peers jsonrpc and lsp.dev handle notifications on the goroutine that reads, and those whose names end with inline also
// the echo and the answer to a question. In go.lsp.dev/jsonrpc2 that is the default, and Async releases the reader.
//
// The peer lines is jsonrpc with Lines over the standard streams of a child, instead of Stdio.
//
// The two MCP SDKs do more than the general packages: their JSON-RPC layer cannot be used
// without the MCP layer.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

func main() {
	serve := flag.String("serve", "", "be the server of this peer on standard input and output")
	links := flag.String("link", "mem,pipe,near,far", "links to measure")
	works := flag.String("work", "seq,par,flood,big,twoway", "work to measure")
	only := flag.String("peer", "", "peers to measure; all if empty")
	samples := flag.Int("samples", 9, "samples per peer")
	var e extent
	flag.DurationVar(&e.span, "span", 100*time.Millisecond, "length of a sample")
	flag.IntVar(&e.ops, "ops", 0, "operations of each caller in a sample, instead of a length")
	at := flag.Float64("q", 0.5, "`quantile` of the samples to print: on a machine that is not idle a lower one "+
		"varies less")
	cpu := flag.String("cpuprofile", "", "write a CPU profile here")
	cases := flag.String("cases", "", "run the cases in this `folder` instead of measuring")
	counts := flag.Bool("count", false, "count instructions and system calls instead of measuring")
	idlers := flag.Int("idle", 0, "measure the memory of so many `peers` to which nothing comes, instead of time")
	dangers := flag.Bool("unsafe", false,
		"meet each peer with situations in which one may hang or end, instead of measuring")
	one := flag.Int("meet", 0, "meet the peer with the situation of this `number`")
	undo := flag.Bool("tricks", false, "measure jsonrpc without each of its tricks")
	tools := flag.String("tools", "", "be the server of this peer for the cases, on standard input and output")
	flag.Parse()
	switch {
	case *tools != "":
		find(*tools).tools(stdio())
		return
	case *cases != "":
		runCases(os.Stdout, *cases, *only)
		return
	case *dangers:
		meetAll(os.Stdout, *only)
		return
	case *one > 0:
		meet(os.Stdout, *one, *only)
		return
	case *undo:
		ablate(os.Stdout, *samples, e.span)
		return
	case *idlers > 0:
		idle(os.Stdout, *idlers, strings.Split(cmp.Or(*only, comparedPeers), ","))
		return
	case *counts:
		if !count(os.Stdout, *links, *works, strings.Split(cmp.Or(*only, comparedPeers), ",")) {
			os.Exit(1)
		}
		return
	}
	if *serve != "" {
		find(*serve).serve(stdio())
		return
	}
	defer profile(*cpu)()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0)) // see dialChild
	report := &table{at: *at}
	for link := range strings.SplitSeq(*links, ",") {
		conns := dialAll(link, *only)
		for work := range strings.SplitSeq(*works, ",") {
			report.add(link, work, measureAll(conns, work, *samples, e))
			fmt.Fprintln(os.Stderr, link, work, "done")
		}
		for _, c := range conns {
			c.close()
		}
	}
	report.print(os.Stdout)
}

func find(name string) *peer {
	for _, p := range peers {
		if p.name == name {
			return p
		}
	}
	panic("unknown peer " + name)
}
