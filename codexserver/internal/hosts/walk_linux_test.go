package hosts_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
)

func TestMain(m *testing.M) {
	box.Main()
	os.Exit(m.Run())
}

func TestWalk(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, "hello from "+r.Host+"\n") }))
	got := w.command(t, allow("one.example.com"), "bash", "-c", `curl -sS --cacert `+w.ca+` https://one.example.com/ https://two.example.com/; exec 3<>/dev/tcp/1.2.3.4/80; ls -l /proc/self/fd; id -u`)
	fmt.Printf("%s %v %v\n", got.Aggregated, got.used, got.refused)
}
