// Sends by the unmodified webpush-go what each line of standard input asks for, and prints one JSON line about each.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"os"

	webpush "github.com/SherClockHolmes/webpush-go"
)

type pair struct{ private, public string }

type asked struct {
	Subscription webpush.Subscription `json:"subscription"`
	Body         string               `json:"body"`
	Key          string               `json:"key"`
	TTL          int                  `json:"ttl"`
	Topic        string               `json:"topic"`
	Urgency      string               `json:"urgency"`
}

type answer struct {
	Status   int    `json:"status"`
	TTL      string `json:"ttl"`
	Location string `json:"location"`
	Body     string `json:"body"`
}

func made() pair {
	private, public, err := webpush.GenerateVAPIDKeys()
	must(err)
	return pair{private, public}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func print(facts any) {
	must(json.NewEncoder(os.Stdout).Encode(facts))
}

func send(keys map[string]pair, line []byte) answer {
	var ask asked
	must(json.Unmarshal(line, &ask))
	body, err := base64.StdEncoding.DecodeString(ask.Body)
	must(err)
	response, err := webpush.SendNotification(body, &ask.Subscription, &webpush.Options{
		Subscriber:      "judge@example.com",
		Topic:           ask.Topic,
		TTL:             ask.TTL,
		Urgency:         webpush.Urgency(ask.Urgency),
		VAPIDPublicKey:  keys[ask.Key].public,
		VAPIDPrivateKey: keys[ask.Key].private,
	})
	must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(err)
	return answer{response.StatusCode, response.Header.Get("TTL"), response.Header.Get("Location"), string(text)}
}

func main() {
	keys := map[string]pair{"own": made(), "other": made()}
	print(map[string]string{"own": keys["own"].public, "other": keys["other"].public})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		print(send(keys, lines.Bytes()))
	}
	must(lines.Err())
}
