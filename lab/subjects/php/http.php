<?php
// HTTP for subjects in PHP: a server that is a loop over sockets, in one process, and a client by curl.
declare(strict_types=1);

/** The answering half. */
final class Answering
{
    /** @var resource */
    private $listener;
    private array $connections = [];
    private array $waiting = [];
    private array $samples = [];
    private ?string $out = null;

    public function __construct(private Codec $codec, private array $order)
    {
        $address = $order['bind'] ?? '127.0.0.1:0';
        $options = stream_context_create(['socket' => ['tcp_nodelay' => true]]);
        $flags = STREAM_SERVER_BIND | STREAM_SERVER_LISTEN;
        $this->listener = stream_socket_server("tcp://$address", $code, $text, $flags, $options)
            ?: throw new RuntimeException($text);
    }

    public function port(): int
    {
        return (int) substr(strrchr(stream_socket_get_name($this->listener, false), ':'), 1);
    }

    public function arm(array $order): void
    {
        [$this->samples, $this->out] = [[], $order['out']];
    }

    public function stop(): array
    {
        if ($this->out !== null) {
            file_put_contents($this->out, implode('', $this->samples));
        }
        return ['report' => 'done', 'n' => count($this->samples), 'errors' => 0, 'digest' => ''];
    }

    /** Serves until an order waits. */
    public function until_ordered($orders): void
    {
        while (true) {
            $ready = [$orders, $this->listener, ...$this->connections];
            $none = null;
            if (stream_select($ready, $none, $none, null) === false) {
                return;
            }
            foreach ($ready as $stream) {
                if ($stream === $this->listener) {
                    $connection = stream_socket_accept($this->listener, 0);
                    stream_set_blocking($connection, false);
                    $this->connections[(int) $connection] = $connection;
                    $this->waiting[(int) $connection] = '';
                } elseif ($stream !== $orders) {
                    $this->hear($stream);
                }
            }
            if (in_array($orders, $ready, true)) {
                return;
            }
        }
    }

    private function hear($connection): void
    {
        $bytes = fread($connection, 1 << 20);
        if ($bytes === '' || $bytes === false) {
            if ($bytes === false || feof($connection)) {
                fclose($connection);
                unset($this->connections[(int) $connection], $this->waiting[(int) $connection]);
            }
            return;
        }
        $waiting = &$this->waiting[(int) $connection];
        $waiting .= $bytes;
        while (($head = strpos($waiting, "\r\n\r\n")) !== false) {
            $length = preg_match('/^content-length:\s*(\d+)/im', substr($waiting, 0, $head), $found) ? (int) $found[1] : 0;
            if (strlen($waiting) < $head + 4 + $length) {
                if (stripos(substr($waiting, 0, $head), "\r\nexpect: 100-continue") !== false && strlen($waiting) === $head + 4) {
                    fwrite($connection, "HTTP/1.1 100 Continue\r\n\r\n");
                }
                return;
            }
            $body = substr($waiting, $head + 4, $length);
            $waiting = substr($waiting, $head + 4 + $length);
            $this->answer($connection, $body);
        }
    }

    private function answer($connection, string $body): void
    {
        $times = [hrtime(true), 0, 0, 0];
        $op = $this->order['op'];
        $work = function (array $request) use ($op, &$times): array {
            $times[1] = hrtime(true);
            $answer = answer_to($op, $request);
            $times[2] = hrtime(true);
            return $answer;
        };
        try {
            [$status, $answer] = ['200 OK', $this->codec->answer($op, $body, $work)];
        } catch (Throwable $error) {
            fwrite(STDERR, "$error\n");
            [$status, $answer] = ['400 Bad Request', ''];
        }
        $times[3] = hrtime(true);
        $this->samples[] = sample(count($this->samples), $times, $status === '200 OK' ? 0 : 1, strlen($body));
        $head = "HTTP/1.1 $status\r\nContent-Type: {$this->codec->type()}\r\nContent-Length: " . strlen($answer) . "\r\n\r\n";
        stream_set_blocking($connection, true);
        for ($all = $head . $answer; $all !== ''; $all = substr($all, $sent)) {
            if (($sent = fwrite($connection, $all)) === false || $sent === 0) {
                return;
            }
        }
        stream_set_blocking($connection, false);
    }
}

/** Posts by curl on a connection that is kept, or with connection=fresh on one for each. */
final class Curl
{
    private CurlHandle $handle;

    public function __construct(array $factors)
    {
        $this->handle = curl_init();
        curl_setopt($this->handle, CURLOPT_FORBID_REUSE, ($factors['connection'] ?? '') === 'fresh');
        if (($factors['tls'] ?? '') === 'on') {
            curl_setopt_array($this->handle, [
                CURLOPT_CAINFO => $factors['tls_certificate'],
                CURLOPT_CAPATH => dirname($factors['tls_certificate']), // No authority of the system's.
                CURLOPT_SSL_VERIFYPEER => true,
                CURLOPT_SSL_VERIFYHOST => 2,
            ]);
        }
    }

    public function post(string $address, string $type, string $body, Stamps $stamps): string
    {
        $answer = '';
        // The certificate has a name, which the target's address has not.
        $named = preg_replace('~^https://(.*):(\d+)/~', 'https://lab:$2/', $address);
        curl_setopt_array($this->handle, [
            CURLOPT_URL => $named,
            CURLOPT_CONNECT_TO => $named === $address ? [] : ['::' . parse_url($address, PHP_URL_HOST) . ':'],
            CURLOPT_POSTFIELDS => $body,
            CURLOPT_HTTPHEADER => ["Content-Type: $type", 'Expect:'],
            CURLOPT_TCP_NODELAY => true,
            CURLOPT_WRITEFUNCTION => function ($_, string $bytes) use (&$answer, $stamps): int {
                $stamps->end = hrtime(true);
                $stamps->first = $stamps->first ?: $stamps->end;
                $answer .= $bytes;
                return strlen($bytes);
            },
        ]);
        if (!curl_exec($this->handle) || curl_getinfo($this->handle, CURLINFO_RESPONSE_CODE) !== 200) {
            throw new RuntimeException('not answered: ' . curl_error($this->handle));
        }
        $stamps->bytes = strlen($answer);
        return $answer;
    }
}

/** A codec that writes and reads texts, and leaves the way to curl. */
abstract class TextCodec implements Codec
{
    private ?Curl $curl = null;

    public function __construct(private array $factors)
    {
    }

    abstract protected function write_request(string $op, array $content): string;

    abstract protected function read_request(string $op, string $body): array;

    abstract protected function write_answer(array $content): string;

    abstract protected function read_answer(string $body): array;

    public function answer(string $op, string $body, callable $work): string
    {
        return $this->write_answer($work($this->read_request($op, $body)));
    }

    public function ask(string $op, string $address, array $content, Stamps $stamps): array
    {
        $this->curl ??= new Curl($this->factors);
        $body = $this->write_request($op, $content);
        $stamps->serialized = hrtime(true);
        $answer = $this->curl->post($address, $this->type(), $body, $stamps);
        if (($this->factors['parsing'] ?? '') === 'file') {
            return $this->read_kept($answer, $stamps);
        }
        return $this->read_answer($answer);
    }

    /** Keeps an answer as a file, and reads the file. */
    private function read_kept(string $answer, Stamps $stamps): array
    {
        $file = tempnam(sys_get_temp_dir(), 'lab');
        try {
            file_put_contents($file, $answer);
            $stamps->end = hrtime(true);
            return $this->read_file($file);
        } finally {
            unlink($file);
        }
    }

    protected function read_file(string $file): array
    {
        return $this->read_answer(file_get_contents($file));
    }
}
