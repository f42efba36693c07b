package main

import (
	"fmt"
	"io"
	"runtime"
	"time"
)

// silent is the other side of a connection on which nothing ever comes.
type silent struct{ until <-chan struct{} }

func (s silent) Read([]byte) (int, error)    { <-s.until; return 0, io.EOF }
func (s silent) Write(b []byte) (int, error) { return len(b), nil }

// idle prints what n servers of each peer hold while nothing comes.
func idle(w io.Writer, n int, names []string) {
	fmt.Fprint(w, "| peer | KiB | goroutines |\n|---|---|---|\n")
	for _, name := range names {
		p, until := find(name), make(chan struct{})
		bytes, goroutines := held()
		for range n {
			go p.serve(&stream{Reader: silent{until}, Writer: silent{until}})
		}
		more, many := held()
		fmt.Fprintf(w, "| %s | %.1f | %.1f |\n", name, (more-bytes)/float64(n)/1024,
			float64(many-goroutines)/float64(n))
		close(until)
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
