// Command bench measures what the gateway costs. It runs the real programs: codex-mcp http, which
// is the direct way, codex-mcp-gateway with its own NATS server, and clusters of three NATS
// servers, a front and one or three nodes. For calls it adds the direct way behind a plain reverse
// proxy, which is the least that a hop costs. The model is a script in this process. It prints one
// table, with a column for each of these services.
//
//	go run ./bench             # all of it, about twelve minutes on two cores
//	go run ./bench -part calls # only a part
//
// The parts: calls measures latency, streams and CPU time. The services take turns, and each figure
// is the median of the rounds, so the ratios hold on a machine that does other work too. states
// measures what a user takes whose worker is idle or busy, and what another user gets meanwhile, workers only the first.
// idle does so for users whose worker has ended, and measures the first calls, which start them.
//
// It runs on Linux only. It needs root for the memory, because the programs hide theirs from others.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"
)

// size says how much is measured.
type size struct {
	nodes  []int // of each service, see [lab.start]
	rounds int   // of the part calls
	calls  int   // of each kind in a round
	pieces int   // of a streamed answer
	busy   int   // users with a worker, idle and busy
	idle   int   // users without a worker
	users  int   // who are configured at least, in a gateway

	lasts time.Duration // for which the CPU time of a state is measured
}

func main() {
	l := &lab{size: size{nodes: []int{direct, alone, 1, 3}, calls: 30, pieces: 3000, lasts: 5 * time.Second}}
	flag.IntVar(&l.size.rounds, "rounds", 7, "rounds of the part calls")
	flag.IntVar(&l.size.busy, "busy", 200, "users with a worker, idle and busy")
	flag.IntVar(&l.size.idle, "idle", 1000, "users without a worker")
	flag.IntVar(&l.size.users, "users", 0, "users who are configured at least")
	parts := flag.String("part", "calls,states,idle", "what to measure")
	proxied := flag.String("proxy", "", "serve as a plain reverse proxy of this URL, for the bench itself")
	flag.Parse()
	if *proxied != "" {
		fmt.Fprintln(os.Stderr, "bench:", serveProxy(*proxied))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.UserCacheDir() // a worker has a /tmp of its own
	if err == nil {
		err = l.run(ctx, dir, strings.Split(*parts, ",")...)
		fmt.Print(&l.table)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// serveProxy serves as a reverse proxy of a URL until it fails.
func serveProxy(to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "serving MCP at http://%s%s; for the bench\n", l.Addr(), u.Path)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		// With a body that it has not read to the end, the proxy may break off the answer.
		body, _ := io.ReadAll(r.In.Body) // the server refuses what is cut off
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
		r.SetURL(&url.URL{Scheme: u.Scheme, Host: u.Host})
	}}
	return (&http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}).Serve(l)
}
