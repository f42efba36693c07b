package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	small = strings.Repeat("The quick brown fox. ", 8)
	large = strings.Repeat("0123456789abcdef", 1<<16)
)

const (
	floodSize = 5_000
	callers   = 64 // of par
)

// sample is the cost of one operation.
type sample struct{ ns, allocs, bytes float64 }

// extent is how long a sample is: a time, or if ops is not 0 so many operations of each caller.
type extent struct {
	span time.Duration
	ops  int
}

// warmUp is the extent of what runs before the first sample.
func (e extent) warmUp() extent { return extent{e.span / 10, min(e.ops, 20)} }

// measureAll measures all peers in turn, sample by sample.
func measureAll(conns []*conn, work string, samples int, e extent) map[string][]sample {
	out := make(map[string][]sample)
	for _, c := range conns {
		run(c, work, e.warmUp())
	}
	for range samples {
		for _, c := range conns {
			out[c.name] = append(out[c.name], run(c, work, e))
		}
	}
	return out
}

func run(c *conn, work string, e extent) sample {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	var n int
	switch work {
	case "seq":
		n = e.repeat(func() { echo(c, small) })
	case "big":
		n = e.repeat(func() { echo(c, large) })
	case "twoway":
		n = e.repeat(func() { check(c.ask(small)) })
	case "par":
		n = e.parallel(func() { echo(c, small) })
	case "flood":
		size := cmp.Or(e.ops, floodSize)
		for n == 0 || e.ops == 0 && time.Since(start) < e.span {
			for range size {
				check(c.notify(small[:40]))
			}
			check(c.counted(size))
			n += size
		}
	default:
		panic("unknown work " + work)
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return sample{
		ns:     float64(took.Nanoseconds()) / float64(n),
		allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}
}

func echo(c *conn, s string) {
	if got := must(c.echo(s)); len(got) != len(s) {
		panic(fmt.Sprintf("%s: %d bytes came back, want %d", c.name, len(got), len(s)))
	}
}

func (e extent) repeat(f func()) (n int) {
	for start := time.Now(); e.ops == 0 && (n < 3 || time.Since(start) < e.span) || n < e.ops; n++ {
		f()
	}
	return n
}

func (e extent) parallel(f func()) int {
	var total atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() { total.Add(int64(e.repeat(f))) })
	}
	wg.Wait()
	return int(total.Load())
}

// table collects and prints the measurements.
type table struct {
	at   float64 // the quantile of the samples that is printed
	rows []row
}

type row struct {
	at         float64
	link, work string
	samples    map[string][]sample
}

func (t *table) add(link, work string, s map[string][]sample) {
	t.rows = append(t.rows, row{t.at, link, work, s})
}

func quantile(s []sample, at float64, of func(sample) float64) float64 {
	v := make([]float64, len(s))
	for i := range s {
		v[i] = of(s[i])
	}
	slices.Sort(v)
	return v[int(at*float64(len(v)-1)+0.5)]
}

func ns(s sample) float64 { return s.ns }

// best returns the fastest of the other packages beside ours, and its time in parts of ours. What handles requests on
// the reader is compared with ours where that is declared.
func (r *row) best() (name string, ratio float64) {
	for _, p := range peers {
		if s := r.samples[p.name]; s != nil && p.other() {
			mode := oursPeer.name
			if strings.HasSuffix(p.name, inlineMode) {
				mode = inlinePeer.name
			}
			if r.samples[mode] == nil {
				continue
			}
			if m := quantile(s, r.at, ns) / quantile(r.samples[mode], r.at, ns); name == "" || m < ratio {
				name, ratio = p.name, m
			}
		}
	}
	return name, ratio
}

func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "%s, GOMAXPROCS %d, %s/%s\n\n", runtime.Version(), runtime.GOMAXPROCS(0), runtime.GOOS,
		runtime.GOARCH)
	fmt.Fprint(w, "| link | work | ")
	for _, p := range peers {
		fmt.Fprintf(w, "%s | ", p.name)
	}
	fmt.Fprintln(w, "best other ÷ jsonrpc | jsonrpc ÷ naive | jsonrpc ÷ raw | allocs/op (jsonrpc, best other) |")
	fmt.Fprintln(w, strings.Repeat("|---", len(peers)+6)+"|")
	for i := range t.rows {
		t.rows[i].print(w)
	}
}

func (r *row) print(w io.Writer) {
	fmt.Fprintf(w, "| %s | %s | ", r.link, r.work)
	for _, p := range peers {
		if s := r.samples[p.name]; s != nil {
			fmt.Fprintf(w, "%s | ", micros(quantile(s, r.at, ns)))
		} else {
			fmt.Fprint(w, "| ")
		}
	}
	ours, raw, naive := r.samples["jsonrpc"], r.samples["raw"], r.samples["naive"]
	name, best := r.best()
	allocs := func(s sample) float64 { return s.allocs }
	if ours == nil || raw == nil || naive == nil || name == "" {
		if ours != nil {
			fmt.Fprintf(w, "| | | %.1f |", quantile(ours, r.at, allocs))
		}
		fmt.Fprintln(w)
		return
	}
	us := quantile(ours, r.at, ns)
	fmt.Fprintf(w, "%.2f (%s) | %.2f | %.1f | %.0f, %.0f |\n", best, name, us/quantile(naive, r.at, ns),
		us/quantile(raw, r.at, ns),
		quantile(ours, r.at, allocs), slices.MinFunc(r.others(allocs), cmp.Compare))
}

func (r *row) others(of func(sample) float64) (out []float64) {
	for _, p := range peers {
		if s := r.samples[p.name]; s != nil && p.other() {
			out = append(out, quantile(s, r.at, of))
		}
	}
	return out
}

func micros(ns float64) string {
	switch us := ns / 1000; {
	case us < 10:
		return fmt.Sprintf("%.2f", us)
	case us < 100:
		return fmt.Sprintf("%.1f", us)
	default:
		return fmt.Sprintf("%.0f", us)
	}
}
