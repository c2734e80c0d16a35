// Answers every POST with its own body, over the HTTP/2 and TLS of Go, and says afterwards what it has seen.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

type connection struct{ requests atomic.Int64 }

type key struct{}

var requests, connections, failed atomic.Int64

// Takes the certificate, its key, the version of TLS, the stream limit, the window in bytes, and the number of
// requests after which a connection is ended, or 0.
func main() {
	versions := map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}
	version, leaveAfter := versions[os.Args[3]], number(6)
	server := http.Server{
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, leaveAfter) }),
		TLSConfig: &tls.Config{MinVersion: version, MaxVersion: version},
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          int(number(4)),
			MaxReceiveBufferPerStream:     int(number(5)),
			MaxReceiveBufferPerConnection: 1 << 16, // the least that Go takes
		},
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			connections.Add(1)
			return context.WithValue(ctx, key{}, &connection{})
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go leaveWithParent()
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(server.ServeTLS(listener, os.Args[1], os.Args[2]))
}

func answer(w http.ResponseWriter, r *http.Request, leaveAfter int64) {
	if r.URL.Path == "/totals" {
		fmt.Fprint(w, requests.Load(), " ", connections.Load(), " ", failed.Load())
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		failed.Add(1)
		return
	}
	requests.Add(1)
	w.Header().Set("x-path", r.URL.Path)
	w.Header().Set("x-long", strings.Repeat(r.URL.Path, 200))
	if r.Context().Value(key{}).(*connection).requests.Add(1) == leaveAfter {
		w.Header().Set("Connection", "close") // over HTTP/2: a GOAWAY, and the end when all streams have ended
	}
	w.Write(body)
}

func number(index int) int64 {
	value, err := strconv.ParseInt(os.Args[index], 10, 32)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func leaveWithParent() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
