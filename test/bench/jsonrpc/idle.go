package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"time"
)

// silent is the other side of a connection, from which nothing comes after what it says first.
type silent struct {
	says  string
	until <-chan struct{}
}

func (s *silent) Read(b []byte) (n int, err error) {
	if n, s.says = copy(b, s.says), ""; n > 0 {
		return n, nil
	}
	<-s.until
	return 0, io.EOF
}

func (s *silent) Write(b []byte) (int, error) { return len(b), nil }

// idle prints what n servers of each peer hold while nothing comes, at first and after a call.
func idle(w io.Writer, n int, names []string) {
	fmt.Fprint(w, "| peer | after | KiB | goroutines |\n|---|---|---|---|\n")
	echo := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}`+"\n",
		must(json.Marshal(call("echo", small, 0))))
	for _, name := range names {
		for _, first := range []struct{ name, says string }{{"nothing", ""}, {"a call", echo}} {
			p, until := find(name), make(chan struct{})
			bytes, goroutines := held()
			for range n {
				other := &silent{first.says, until}
				go p.serve(&stream{Reader: other, Writer: other})
			}
			more, many := held()
			fmt.Fprintf(w, "| %s | %s | %.1f | %.1f |\n", name, first.name, (more-bytes)/float64(n)/1024,
				float64(many-goroutines)/float64(n))
			close(until)
		}
	}
}

// held returns the memory in use, stacks included, and the number of goroutines, when all have come to rest.
func held() (bytes float64, goroutines int) {
	<-time.After(time.Second)
	runtime.GC()
	runtime.GC() // what the pools hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}
