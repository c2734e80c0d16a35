<?php
// Subjects in PHP. Usage: php subject.php rest+json|rest+xml|xmlrpc|soap
declare(strict_types=1);

require __DIR__ . '/lsp.php';
require __DIR__ . '/http.php';
require __DIR__ . '/codecs.php';

ini_set('display_errors', 'stderr');
$codecs = ['rest+json' => Json::class, 'rest+xml' => Xml::class, 'xmlrpc' => XmlRpc::class, 'soap' => Soap::class];
$extensions = ['rest+json' => 'json', 'rest+xml' => 'SimpleXML', 'xmlrpc' => 'xmlrpc', 'soap' => 'soap'];
$class = $codecs[$argv[1]];
speak(fn (array $factors) => new $class(), [$extensions[$argv[1]] => (string) phpversion($extensions[$argv[1]])]);
