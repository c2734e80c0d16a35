// Command queue is a rival of the path of single messages: a durable job queue with one row for each job, River on PostgreSQL. It answers a
// request with 202 after the job's row is committed, sends each job to the push service, and completes its row.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// requestMaxBytes is the largest request that is read.
const requestMaxBytes = 16 * 1024

// pushArgs is the job: one message to one token.
type pushArgs struct {
	Token   string          `json:"token"`
	Payload json.RawMessage `json:"payload"`
	Expires int64           `json:"expires"`
}

// Kind names the job in its row.
func (pushArgs) Kind() string { return "push" }

// pushWorker sends jobs to the push service.
type pushWorker struct {
	river.WorkerDefaults[pushArgs]
	client *http.Client
	origin string
}

// Work sends one message; an error makes River try again later.
func (w *pushWorker) Work(ctx context.Context, job *river.Job[pushArgs]) error {
	url := w.origin + "/3/device/" + job.Args.Token
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(job.Args.Payload))
	if err != nil {
		return err
	}
	request.Header.Set("apns-topic", "com.example.app")
	request.Header.Set("apns-push-type", "alert")
	request.Header.Set("apns-expiration", strconv.FormatInt(job.Args.Expires, 10))
	request.Header.Set("authorization", "bearer none")
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the push service answered %d", response.StatusCode)
	}
	return nil
}

// message is a request of Stentor's API, as far as this program reads it.
type message struct {
	Target struct {
		Token struct {
			Token string `json:"token"`
		} `json:"token"`
	} `json:"target"`
	Notification struct {
		Title string `json:"title"`
		Body  string `json:"body"`
	} `json:"notification"`
	TTLSeconds int64 `json:"ttl_seconds"`
}

// args checks a request and makes its job.
func (m *message) args(now time.Time) (pushArgs, error) {
	if m.Target.Token.Token == "" {
		return pushArgs{}, errors.New("target.token.token is missing")
	}
	payload, err := json.Marshal(map[string]any{"aps": map[string]any{"alert": m.Notification}})
	if err != nil {
		return pushArgs{}, err
	}
	expires := now.Add(time.Duration(m.TTLSeconds) * time.Second).Unix()
	return pushArgs{Token: m.Target.Token.Token, Payload: payload, Expires: expires}, nil
}

// accept answers a request after the commit of its row.
func accept(queue *river.Client[pgx.Tx]) http.HandlerFunc {
	return func(reply http.ResponseWriter, request *http.Request) {
		var given message
		if err := json.NewDecoder(http.MaxBytesReader(reply, request.Body, requestMaxBytes)).Decode(&given); err != nil {
			http.Error(reply, err.Error(), http.StatusBadRequest)
			return
		}
		args, err := given.args(time.Now())
		if err != nil {
			http.Error(reply, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		inserted, err := queue.Insert(request.Context(), args, nil)
		if err != nil {
			http.Error(reply, err.Error(), http.StatusServiceUnavailable)
			return
		}
		id := strconv.FormatInt(inserted.Job.ID, 10)
		reply.Header().Set("content-type", "application/json")
		reply.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(reply, `{"id":"%s","campaign":"%s"}`, id, id)
	}
}

// sender makes the client for the push service; all requests share a few connections of HTTP/2.
func sender(authority string) (*http.Client, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", authority)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}, nil
}

func run() error {
	database := flag.String("database", "", "address of PostgreSQL")
	push := flag.String("push", "", "origin of the push service: https://127.0.0.1:8443")
	authority := flag.String("authority", "", "file with the certificate of the push service's authority")
	ready := flag.String("ready-file", "", "file that is written when the program listens")
	workers := flag.Int("workers", 1000, "jobs at work at the same time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, *database)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	client, err := sender(*authority)
	if err != nil {
		return err
	}
	all := river.NewWorkers()
	river.AddWorker(all, &pushWorker{client: client, origin: *push})
	queues := map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: *workers, FetchCooldown: 10 * time.Millisecond}}
	queue, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Queues: queues, Workers: all})
	if err != nil {
		return err
	}
	if err := queue.Start(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /healthz", func(reply http.ResponseWriter, _ *http.Request) { reply.WriteHeader(http.StatusOK) })
	routes.HandleFunc("POST /v1/messages", accept(queue))
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	go func() { <-ctx.Done(); _ = server.Close() }()
	facts := fmt.Sprintf("{\"address\":%q}\n", listener.Addr())
	if err := os.WriteFile(*ready, []byte(facts), 0o600); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
