// Command gorush is a rival of the path of single messages: gorush itself, which keeps a message in memory and answers before it is sent. Its
// packages run unchanged behind its own API (POST /api/push); this program sets what its configuration cannot: the address of the push service
// and whom it trusts.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/appleboy/gorush/config"
	"github.com/appleboy/gorush/logx"
	"github.com/appleboy/gorush/notify"
	"github.com/appleboy/gorush/router"
	"github.com/appleboy/gorush/status"
	"github.com/golang-queue/queue"
	"golang.org/x/net/http2"
)

// queueMax is the number of messages that gorush keeps. It drops those for which there is no room, so there is room for all.
const queueMax = 4_000_000

// configured returns gorush's own defaults, with a key of our own for the push service and as many pushes at a time as the other rivals make.
func configured(address string, workers int64) (*config.ConfYaml, error) {
	cfg, err := config.LoadConf("")
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	cfg.Core.Address, cfg.Core.Port, cfg.Core.WorkerNum, cfg.Core.QueueNum = host, port, workers, queueMax
	cfg.Ios.Enabled, cfg.Ios.KeyType, cfg.Ios.KeyID, cfg.Ios.TeamID = true, "p8", "ABC123DEFG", "DEF123GHIJ"
	cfg.Ios.KeyBase64 = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	cfg.Ios.MaxConcurrentPushes = uint(workers)
	cfg.Log.AccessLevel, cfg.Log.AccessLog = "error", "/dev/null"
	return cfg, nil
}

// redirect makes gorush's client connect to a push service of ours instead of Apple's.
func redirect(origin, authority string) error {
	push, err := url.Parse(origin)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	given, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	if !roots.AppendCertsFromPEM(given) {
		return fmt.Errorf("%s has no certificate", authority)
	}
	transport, ok := notify.ApnsClient.HTTPClient.Transport.(*http2.Transport)
	if !ok {
		return errors.New("gorush sends in another way than over HTTP/2")
	}
	trusted := &tls.Config{RootCAs: roots, ServerName: push.Hostname(), NextProtos: []string{"h2"}}
	transport.DialTLSContext = func(ctx context.Context, network, _ string, _ *tls.Config) (net.Conn, error) {
		return (&tls.Dialer{Config: trusted}).DialContext(ctx, network, push.Host)
	}
	return nil
}

func run() error {
	push := flag.String("push", "", "origin of the push service: https://127.0.0.1:8443")
	authority := flag.String("authority", "", "file with the certificate of the push service's authority")
	ready := flag.String("ready-file", "", "file that is written when the program listens")
	workers := flag.Int64("workers", 1000, "pushes at the same time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// gorush takes an address and not a listener, so the port is found first.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return err
	}
	cfg, err := configured(address, *workers)
	if err != nil {
		return err
	}
	if err := logx.InitLog(cfg.Log.AccessLevel, cfg.Log.AccessLog, cfg.Log.ErrorLevel, cfg.Log.ErrorLog); err != nil {
		return err
	}
	if err := status.InitAppStatus(cfg); err != nil {
		return err
	}
	notify.MaxConcurrentIOSPushes = make(chan struct{}, cfg.Ios.MaxConcurrentPushes)
	if err := notify.InitAPNSClient(ctx, cfg); err != nil {
		return err
	}
	if err := redirect(*push, *authority); err != nil {
		return err
	}
	worker := queue.NewConsumer(
		queue.WithQueueSize(int(cfg.Core.QueueNum)), queue.WithFn(notify.Run(cfg)), queue.WithLogger(logx.QueueLogger()),
	)
	pool := queue.NewPool(int(cfg.Core.WorkerNum), queue.WithWorker(worker), queue.WithLogger(logx.QueueLogger()))
	defer pool.Release()
	go announce(ctx, address, *ready)
	return router.RunHTTPServer(ctx, cfg, pool)
}

// announce writes the address once the server answers.
func announce(ctx context.Context, address, ready string) {
	for ctx.Err() == nil {
		reply, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			continue
		}
		reply.Body.Close()
		if err := os.WriteFile(ready, []byte(fmt.Sprintf("{\"address\":%q}\n", address)), 0o600); err != nil {
			log.Fatal(err)
		}
		return
	}
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
